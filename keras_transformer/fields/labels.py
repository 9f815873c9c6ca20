"""Class labels of examples and of their tokens."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.fields.field import Field
from keras_transformer.tensors import Tensor
from keras_transformer.text.lists import END

SHOWN = 20  # maximum number of names in an error
NONE, WRONG = -1, -2  # the ids of a token without a label, and of a name that is not a label
BUCKETS = 2**31 - 1  # of hashes, which are int32


class Labels(Field):
    """Class labels, encoded as their indices in a list of names.

    Args:
        names: Names of the classes.

    Call arguments of `encode`:
        column: Strings, `[B]`; ASCII white space around a name is ignored.

    Returns of `encode`:
        int32, `[B]`; -2 for a string that is not one of the names.
    """

    padding = NONE

    def __init__(self, names: Sequence[str]):
        self.names = tuple(names)

    def encode(self, column: Tensor) -> Tensor:  # noqa: D102
        equal = tf.equal(tf.expand_dims(tf.strings.strip(column), 1), tf.constant(self.names))
        index = tf.argmax(equal, axis=1, output_type=tf.int32)  # [B], of [B, C]
        return tf.where(tf.reduce_any(equal, axis=1), index, WRONG)

    def is_valid(self, encoded: Any) -> Tensor | None:
        """Returns a boolean `[B]`, true for labels that are among the names."""
        return encoded > WRONG

    def explain(self) -> str:  # noqa: D102
        return f"one of the training data's labels, {', '.join(self.names)}"

    def identity(self) -> dict[str, Any]:  # noqa: D102
        return {**super().identity(), "names": list(self.names)}


class LabelNumbers(Field):
    """Class labels as numbers that differ from label to label, whatever names there are.

    Call arguments of `encode`:
        column: Strings, `[B]`; ASCII white space around a name is ignored.

    Returns of `encode`:
        int32, `[B]`: hashes of at least 0.
    """

    padding = NONE

    def encode(self, column: Tensor) -> Tensor:  # noqa: D102
        return tf.cast(tf.strings.to_hash_bucket_fast(tf.strings.strip(column), BUCKETS), tf.int32)


class TokenLabels(Labels):
    """A label for each token of a text, and `NONE` for tokens without one.

    Args:
        names: Names of the classes.

    Call arguments of `encode`:
        column: Strings, `[B]`: the labels of a text's words, separated by white space.

    Returns of `encode`:
        A `tf.RaggedTensor` `[B, (W)]`, int32: the label of each word. The task assigns them to the
        tokens of the words.
    """

    is_ragged = True

    def encode(self, column: Tensor) -> Tensor:  # noqa: D102
        names = tf.strings.split(column)  # [B, (W)]
        return names.with_flat_values(super().encode(names.flat_values))

    def is_valid(self, encoded: Any) -> Tensor | None:
        """Returns a boolean `[B]`, true for examples all of whose labels are among the names."""
        return tf.reduce_all(encoded.with_flat_values(encoded.flat_values > WRONG), axis=1)

    def explain(self) -> str:  # noqa: D102
        return f"a label for each word, from {', '.join(self.names)}"


class LabelSets(Labels):
    """The class labels of an example, any number of them, encoded as a 0 or 1 for each class.

    Args:
        names: Names of the classes C.

    Call arguments of `encode`:
        column: Strings, `[B]`: labels with a line feed between them. ASCII white space around a
            name, repeated and empty names are ignored.

    Returns of `encode`:
        int8, `[B, C]`: 1 for each label of the example; all -2 if a string is not one of the names.
    """

    dtype = "int8"
    padding = 0

    def __init__(self, names: Sequence[str]):
        super().__init__(names)
        self.item_shape = (len(self.names),)

    def encode(self, column: Tensor) -> Tensor:  # noqa: D102
        items = tf.strings.split(column, END)  # [B, (L)]
        rows, count = items.value_rowids(), items.nrows()
        names = tf.strings.strip(items.flat_values)
        ids = super().encode(names)
        ids = tf.where(tf.equal(names, ""), NONE, ids)
        given = tf.one_hot(ids, len(self.names), dtype=tf.int32)  # zeros for negative ids
        given = tf.minimum(tf.math.unsorted_segment_sum(given, rows, count), 1)  # [B, C]
        wrong = tf.cast(tf.equal(ids, WRONG), tf.int32)
        wrong = tf.math.unsorted_segment_sum(wrong, rows, count) > 0  # [B]
        return tf.cast(tf.where(tf.expand_dims(wrong, 1), WRONG, given), tf.int8)

    def is_valid(self, encoded: Any) -> Tensor | None:
        """Returns a boolean `[B]`, true for examples all of whose labels are among the names."""
        return tf.reduce_all(encoded > WRONG, axis=1)

    def explain(self) -> str:  # noqa: D102
        more = len(self.names) - SHOWN
        rest = f" and {more:,} more" if more > 0 else ""
        return f"labels of the training data, of {', '.join(self.names[:SHOWN])}{rest}"
