"""Rows of many values in blocks, for steps of searches that pass over all logits a few times only.

The logits of 128 hypotheses are larger than the second-level cache of a processor.
"""

import functools

from keras_transformer.decoding.predictor import NEVER
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor

SIZES = (50, 400)  # smallest and largest block size that pays off
FALLBACK = 64  # block size for vocabularies without a divisor in this range


class Blocks:
    """Rows of V values, such as logits, in blocks.

    Reducing them to the maxima of their blocks takes one pass. The k largest values lie in the k
    blocks with the largest maxima, so no sort of all values is needed. On a CPU such a sort took
    three (LiteRT, XLA) to five times as long (TensorFlow), most of the time of a step of beam
    search. The largest maximum is also what a sum of exponentials needs first.

    Args:
        values: `[..., V]`, floating, at least `NEVER`, with all axes but the first of known size.

    Attributes:
        values: See above.
    """

    def __init__(self, values: Tensor):
        self.values = values
        total = values.shape[-1]
        self._size = _block_size(total)
        self._count = -(-total // self._size)
        self._axes = values.shape[1:-1]

    @functools.cached_property
    def blocks(self) -> Tensor:
        """The values as `[..., count, size]`, the last block filled with `NEVER`."""
        padded = _padded(self.values, self._count * self._size)
        return tf.reshape(padded, (-1, *self._axes, self._count, self._size))

    @functools.cached_property
    def maxima(self) -> Tensor:
        """The largest value of each block, `[..., count]`."""
        return tf.reduce_max(self.blocks, axis=-1)

    def top_k(self, k: int) -> tuple[Tensor, Tensor]:
        """Returns the result of `tf.math.top_k`.

        Among equal values the lower index comes first, as there.

        Args:
            k: Number of values to return, a Python integer, at most V.

        Returns:
            The values `[..., k]`, the largest first, and their indices `[..., k]`, int32.
        """
        if self._count <= k:
            return tf.math.top_k(self.values, k)
        size, batch_dims = self._size, 1 + len(self._axes)
        _, chosen = tf.math.top_k(self.maxima, k)  # [..., k]
        chosen = -tf.math.top_k(-chosen, k)[0]  # by index, so that equal values keep their order
        candidates = tf.gather(self.blocks, chosen, batch_dims=batch_dims)  # [..., k, size]
        candidates = tf.reshape(candidates, (-1, *self._axes, k * size))
        best, places = tf.math.top_k(candidates, k)
        block = tf.gather(chosen, places // size, batch_dims=batch_dims)
        return best, block * size + places % size

    def column(self, index: int) -> Tensor:
        """Returns the value at an index, a Python integer, of each row, `[..., 1]`."""
        block, place = divmod(index, self._size)
        return self.blocks[..., block, place : place + 1]


def top_k(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Returns the k largest values and their indices: see `Blocks.top_k`."""
    return Blocks(values).top_k(k)


def _block_size(total):
    """Returns a divisor of `total`, or `FALLBACK`, for which the last block is padded."""
    root = max(SIZES[0], round(total**0.5))
    divisors = [size for size in range(SIZES[0], SIZES[1] + 1) if total % size == 0]
    return min(divisors, key=lambda size: abs(size - root), default=FALLBACK)


def _padded(values, length):
    missing = length - values.shape[-1]
    if not missing:
        return values
    return tf.pad(
        values, [[0, 0]] * (values.shape.rank - 1) + [[0, missing]], constant_values=NEVER
    )
