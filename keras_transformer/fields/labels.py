"""Class labels of examples and of their tokens."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.fields.field import Field
from keras_transformer.tensors import Tensor

NONE, WRONG = -1, -2  # the ids of a token without a label, and of a name that is not a label


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
