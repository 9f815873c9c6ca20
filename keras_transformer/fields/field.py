"""`Field`, the interface of one column of a data set: from its values to tensors."""

import abc


class Field(abc.ABC):
    """How one column of a data set becomes a tensor, and what a batch and a store need to know.

    A task is a dictionary of fields and a prediction head. The code that stores, shuffles, batches
    and pads examples sees nothing else of a column, so it does not know whether inputs are text.

    Attributes:
        dtype: NumPy name of the dtype that one item is stored in, such as `"uint16"`.
        item_shape: Shape of one item: `()` for a token id or a label, `(F,)` for a frame of F
            features, `(height, width, channels)` for an image.
        is_ragged: Whether an example is a sequence of items with a length of its own.
        min_length: Fewest items of a sequence that is not empty.
        padding: Value of the items after the end of a sequence, in a batch.
    """

    dtype = "int32"
    item_shape = ()
    is_ragged = False
    min_length = 0
    padding = 0

    @abc.abstractmethod
    def encode(self, column):
        """Returns the column of a batch as numbers; runs in a graph.

        Args:
            column: What the source of the data yields, `[B]` or `[B, ...]`.

        Returns:
            A `tf.RaggedTensor` `[B, (T), *item_shape]` if `is_ragged`, otherwise a tensor
            `[B, *item_shape]`.
        """

    def cut(self, encoded, max_length):
        """Returns encoded sequences of which none has more than `max_length` items.

        Args:
            encoded: A `tf.RaggedTensor` `[B, (T), *item_shape]`.
            max_length: At least 1.
        """
        return encoded[:, :max_length]

    def is_valid(self, encoded):
        """Returns which examples of an encoded column can be used, boolean `[B]`; `None`: all."""
        return None

    def explain(self):
        """Returns what a valid value is, the end of a sentence for an error."""
        return "a value that can be read"

    def identity(self):
        """Returns what the encoding depends on, a dictionary of plain values.

        A stored corpus is encoded again if any of them changes.
        """
        return {"field": type(self).__name__, "dtype": self.dtype}

    def files(self):
        """Returns the files that the field needs at run time: names to bytes."""
        return {}
