"""Rows of several texts, taken apart into one row for each text and joined again."""

from typing import NamedTuple

from keras import ops

from keras_transformer.tensors import Tensor


class TextsOfRows(NamedTuple):
    """Places of the texts of packed rows, for layers that cannot tell them apart by a mask.

    The number of texts and the length of the longest one depend on the data, so that XLA cannot
    compile this.

    Attributes:
        index: Number of the text of each token and its position there, int32 `[B * T, 2]`.
        shape: Shape `[B, T]` of the rows.
    """

    index: Tensor
    shape: tuple

    @classmethod
    def of(cls, places: Tensor) -> "TextsOfRows":
        """Returns the texts of rows.

        Args:
            places: Position of each token in its text, counted from 0, int32 `[B, T]`. Every row
                begins with a text.
        """
        flat = ops.reshape(places, (-1,))  # [B * T]
        text = ops.cumsum(ops.cast(ops.equal(flat, 0), "int32")) - 1
        return cls(ops.stack([text, flat], axis=1), ops.shape(places))

    def apart(self, x: Tensor) -> Tensor:
        """Returns one row for each text, `[texts, longest, D]`, with zeros after it.

        Args:
            x: The packed rows, `[B, T, D]`.
        """
        width = x.shape[-1]
        size = ops.max(self.index, axis=0) + 1  # [texts, longest]
        shape = ops.concatenate([size, ops.convert_to_tensor([width], "int32")])
        rows = ops.scatter(self.index, ops.reshape(x, (-1, width)), shape)
        return ops.reshape(rows, (*ops.unstack(size, 2), width))

    def joined(self, x: Tensor) -> Tensor:
        """Returns the packed rows `[B, T, D]` of a result of `apart`."""
        longest, width = ops.shape(x)[1], x.shape[-1]
        place = self.index[:, 0] * longest + self.index[:, 1]
        rows = ops.take(ops.reshape(x, (-1, width)), place, axis=0)  # [B * T, D]
        return ops.reshape(rows, (*self.shape, width))
