"""`Field`, the interface that turns a column of a data set into tensors."""

import abc
from typing import Any

from keras_transformer.tensors import Tensor


class Field(abc.ABC):
    """Encoding, storage and padding of one column of a data set.

    The code that stores, shuffles, batches and pads examples knows a column only through its field.
    It therefore works for text, images and any other kind of input.

    Attributes:
        dtype: NumPy name of the dtype in which an item is stored, such as `"uint16"`.
        item_shape: Shape of one item: `()` for a token id or a label, `(F,)` for a frame of F
            features, `(height, width, channels)` for an image.
        is_ragged: Whether an example is a sequence of items whose length varies.
        min_length: Length of the shortest sequence that is not empty, in items.
        max_length: Maximum length of a sequence, in items, in place of that of the data settings.
            `None`: theirs.
        padding: Value that a batch has after the end of a sequence.
    """

    dtype: str = "int32"
    item_shape: tuple[int, ...] = ()
    is_ragged = False
    min_length = 0
    max_length: int | None = None
    padding: float = 0

    @abc.abstractmethod
    def encode(self, column: Tensor) -> Tensor:
        """Encodes the column of a batch as numbers; runs in a graph.

        Args:
            column: Values from the source of the data, `[B]` or `[B, ...]`.

        Returns:
            A `tf.RaggedTensor` `[B, (T), *item_shape]` if `is_ragged`, otherwise a tensor
            `[B, *item_shape]`.
        """

    def truncate(self, encoded: Any, max_length: int) -> Tensor:
        """Truncates encoded sequences to `max_length` items.

        Args:
            encoded: A `tf.RaggedTensor` `[B, (T), *item_shape]`.
            max_length: At least 1.
        """
        return encoded[:, :max_length]

    def is_valid(self, encoded: Any) -> Tensor | None:
        """Returns a boolean `[B]`, true for examples that can be used, or `None` if all can."""
        return None

    def explain(self) -> str:
        """Returns a description of a valid value, which ends the sentence of an error."""
        return "a value that can be read"

    def identity(self) -> dict[str, str]:
        """Returns everything that the encoding depends on, a dictionary of plain values.

        If any of it changes, a stored corpus is encoded again.
        """
        return {"field": type(self).__name__, "dtype": self.dtype}

    def files(self) -> dict[str, bytes]:
        """Returns the files that the field needs to be restored, a dictionary of names to bytes."""
        return {}
