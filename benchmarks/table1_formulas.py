"""Table 1 of Vaswani et al. (2017): the cost of a layer by formula, and what each mixer is there.

This is the only place that names kinds of mixers. A kind that is not listed is measured without
formulas beside it.
"""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Formula:
    """A row of the paper's Table 1.

    Args:
        complexity: Complexity per layer, as in the paper; in the code below n is `positions`, d is
            `width`, k the `kernel` of a convolution and r the `window`.
        operations: Sequential operations, as in the paper.
        path: Maximum path length, as in the paper.
        multiplications: Function of positions, width, kernel and window that returns the
            complexity as a number.
    """

    complexity: str
    operations: str
    path: str
    multiplications: Callable[[int, int, int, int], int]


ATTENTION = Formula("n² d", "1", "1", lambda n, d, k, r: n * n * d)
RESTRICTED = Formula("r n d", "1", "n / r", lambda n, d, k, r: r * n * d)
RECURRENT = Formula("n d²", "n", "n", lambda n, d, k, r: n * d * d)
# The table has the path of dilated kernels; section 4 also states that of contiguous ones.
DILATED = Formula("k n d²", "1", "log_k(n)", lambda n, d, k, r: k * n * d * d)
CONTIGUOUS = dataclasses.replace(DILATED, path="n / k")

FORMULAS = {
    "self_attention": ATTENTION,
    "restricted": RESTRICTED,
    "lstm": RECURRENT,
    "gru": RECURRENT,
    "ssru": RECURRENT,
    "gated_convolution": CONTIGUOUS,
    "dilated_convolution": DILATED,
}
