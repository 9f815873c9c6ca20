"""`RowPlaces`: the places of one new position in each of several texts of different lengths."""

from typing import NamedTuple

from keras import ops

from keras_transformer.tensors import Tensor


class RowPlaces(NamedTuple):
    """Places of a new position in each of B texts, for a step that they take together.

    The heads of earlier positions are in two caches. The first one has P positions in each text:
    those that the text had when the cache was made, and then padding. The second one has R
    positions, of which each step fills one in all texts.

    Attributes:
        slot: Index of the new position in the second cache, a scalar integer.
        queries: Place of the new position in each text, int32 `[B, 1, 1, 1]`.
        keys: Places of all cached positions, int32 `[B, 1, 1, P + R]`; any number for padding.
        visible: Which positions the new one may attend to, boolean `[B, 1, P + R]`.
    """

    slot: Tensor
    queries: Tensor
    keys: Tensor
    visible: Tensor

    @classmethod
    def of(cls, counts: Tensor, past: Tensor, recent: int, slot: Tensor) -> "RowPlaces":
        """Returns the places for a step.

        Args:
            counts: Number of positions of each text in the first cache, int32 `[B]`.
            past: Number of positions P of the first cache, a scalar integer.
            recent: Number of positions R of the second cache.
            slot: Index of the new position in the second cache, a scalar integer.
        """
        counts = ops.reshape(counts, (-1, 1))  # [B, 1]
        old = ops.arange(past, dtype="int32")  # [P]
        new = ops.arange(recent, dtype="int32")  # [R]
        old = old + ops.zeros_like(counts)  # [B, P]
        visible = ops.concatenate([old < counts, (new <= slot) & (counts >= 0)], axis=1)
        keys = ops.concatenate([old, counts + new], axis=1)  # [B, P + R]
        return cls(
            slot,
            ops.reshape(counts + slot, (-1, 1, 1, 1)),
            ops.expand_dims(ops.expand_dims(keys, 1), 1),
            ops.expand_dims(visible, 1),
        )
