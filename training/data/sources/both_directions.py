"""Pairs of texts in both directions."""

from typing import TYPE_CHECKING, Any

import numpy as np

from keras_transformer.training.data.sources.base import Source

if TYPE_CHECKING:
    import tensorflow as tf


class BothDirections(Source):
    """A source of pairs whose training split also has every pair with its sides exchanged.

    First come all pairs as they are, then all of them exchanged. The other splits do not change,
    and neither do the pairs that a pipeline receives.

    Args:
        data: The `Source` of pairs.
    """

    def __init__(self, data):
        self._data = data
        self.splits, self.description = data.splits, data.description

    def rows(self, split) -> "tf.data.Dataset":
        rows = self._data.rows(split)
        if split != "train":
            return rows
        return rows.concatenate(rows.map(lambda source, target: (target, source)))

    def requests(self, split) -> "tf.data.Dataset":  # noqa: D102
        return self._data.requests(split)

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        return self._data.metadata()

    def count(self, split) -> int | None:
        count = self._data.count(split)
        return count if split != "train" or count is None else 2 * count

    def weights(self, split) -> np.ndarray | None:
        weights = self._data.weights(split)
        return weights if split != "train" or weights is None else np.tile(weights, 2)

    def identity(self, split) -> Any:
        """Returns the identity of the pairs; for the training split, with a note on the others."""
        identity = self._data.identity(split)
        return {"both_directions": identity} if split == "train" else identity

    def left_out(self, split) -> int:
        count = self._data.left_out(split)
        return 2 * count if split == "train" else count

    def check(self) -> None:  # noqa: D102
        self._data.check()
