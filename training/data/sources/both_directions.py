"""Pairs of texts in both directions."""

from typing import TYPE_CHECKING, Any

from keras_transformer.training.data.sources.base import Copies

if TYPE_CHECKING:
    import tensorflow as tf


class BothDirections(Copies):
    """A source of pairs whose training split also has every pair with its sides exchanged.

    First come all pairs as they are, then all of them exchanged.

    Args:
        data: The `Source` of pairs.
    """

    def __init__(self, data):
        super().__init__(data, 2)

    def rows(self, split) -> "tf.data.Dataset":
        rows = self._data.rows(split)
        if split != "train":
            return rows
        return rows.concatenate(rows.map(lambda source, target: (target, source)))

    def identity(self, split) -> Any:
        """Returns the identity of the pairs; for the training split, with a note on the others."""
        identity = self._data.identity(split)
        return {"both_directions": identity} if split == "train" else identity
