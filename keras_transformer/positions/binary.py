"""Binary position encoding: the binary digits of the position, added to the embeddings."""

from __future__ import annotations

import functools
from typing import Any

from keras_transformer.lazy_keras import keras, np
from keras_transformer.positions.tables import FixedPosition
from keras_transformer.variants import declared

# Number of digits of binary positions, enough for 65,536 positions.
DIGITS = 16


@declared
class Binary(FixedPosition):
    """Adds the binary digits of the position, as 1 and -1; see `binary_digits`.

    Differs from the paper, whose sinusoids are a smooth version of these digits: the digit of `2^n`
    has the wavelength `2^(n + 1)`. The values are exact in every dtype.
    """

    kind = "binary"

    def check(self, embedding: keras.Layer) -> None:  # noqa: D102
        check_digits(embedding.max_length, embedding.d_model)

    def check_stack(self, stack: Any) -> None:  # noqa: D102
        if stack.d_model is not None:
            check_digits(stack.max_length, stack.d_model)

    def table(self, length: int, d_model: int) -> np.ndarray:  # noqa: D102
        return binary_digits(length, d_model)


@functools.lru_cache(maxsize=16)
def binary_digits(length, d_model) -> np.ndarray:
    """Returns the binary encoding of the positions `0 .. length - 1`.

    `PE(pos, i) = 2 (floor(pos / 2^(i mod 16)) mod 2) - 1`: feature i is the digit of
    `2^(i mod 16)`, lowest digit first, with -1 in place of 0; after 16 features the digits repeat.

    Args:
        length: Number of positions, at most 65,536 and at most `2^d_model`.
        d_model: Width of the model, in features.

    Returns:
        Read-only NumPy array `[length, d_model]`, float32.

    Example:
        >>> from keras_transformer.positions.binary import binary_digits
        >>> binary_digits(7, 4)[6].tolist()  # 6 = 2 + 4
        [-1.0, 1.0, 1.0, -1.0]
    """
    check_digits(length, d_model)
    places = np.arange(d_model) % DIGITS
    digits = np.arange(length)[:, None] >> places & 1  # [T, D]
    table = (2 * digits - 1).astype(np.float32)
    table.setflags(write=False)  # shared through the cache
    return table


def check_digits(length, d_model) -> None:
    """Raises `ValueError` for more positions than can have different binary digits."""
    if length > 2 ** min(d_model, DIGITS):
        raise ValueError(
            f"`max_length` must be at most 2 to the power of `d_model`, and at most {2**DIGITS:,}, "
            "for binary positions, as each feature is one digit. "
            f"Received: {length} positions, d_model={d_model}."
        )
