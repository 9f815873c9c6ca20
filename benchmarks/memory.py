"""How fast the processor reads memory: what no step of a search for one sentence can surpass."""

import numpy as np

COLUMNS = 512


class MatrixVector:
    """Products of a matrix and a vector, which read every number once.

    Args:
        size: Bytes of the matrix: one that fits into a cache is read faster.
    """

    def __init__(self, size):
        rows = max(1, size // (4 * COLUMNS))
        random = np.random.default_rng(1)
        self._matrix = random.standard_normal((rows, COLUMNS), np.float32)
        self._vector = random.standard_normal(COLUMNS, np.float32)
        self.facts = {"bytes": self._matrix.nbytes}
        self.run(1)

    def run(self, steps):
        """Multiplies `steps` times."""
        for _ in range(steps):
            self._matrix @ self._vector
        return {}


def make(order):
    """Returns the product for a number of bytes."""
    return MatrixVector(order["bytes"])
