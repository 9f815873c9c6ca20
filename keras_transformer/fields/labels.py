"""Class labels, of whole examples and of their tokens."""

import tensorflow as tf

from keras_transformer.fields.field import Field

NONE, WRONG = -1, -2  # a token without a label, and a name that is not a label


class Labels(Field):
    """Names of classes, encoded as their places in a list.

    Args:
        names: The classes.

    Call arguments of `encode`:
        column: Strings, `[B]`; ASCII white space around a name does not count.

    Returns of `encode`:
        int32, `[B]`.
    """

    padding = NONE

    def __init__(self, names):
        self.names = tuple(names)

    def encode(self, column):  # noqa: D102
        same = tf.equal(tf.expand_dims(tf.strings.strip(column), 1), tf.constant(self.names))
        place = tf.argmax(same, axis=1, output_type=tf.int32)  # [B], of [B, C]
        return tf.where(tf.reduce_any(same, axis=1), place, WRONG)

    def is_valid(self, encoded):
        """Returns which labels are among the names, `[B]`."""
        return encoded > WRONG

    def explain(self):  # noqa: D102
        return f"one of the training data's labels, {', '.join(self.names)}"

    def identity(self):  # noqa: D102
        return {**super().identity(), "names": list(self.names)}


class TokenLabels(Labels):
    """A label for each token of a text, `NONE` for tokens that have none.

    Args:
        names: The classes.

    Call arguments of `encode`:
        column: Strings, `[B]`: the labels of a text's words, with white space between them.

    Returns of `encode`:
        A `tf.RaggedTensor` `[B, (W)]`, int32: the label of each word. A task with several tokens in
        a word spreads them over the tokens.
    """

    is_ragged = True

    def encode(self, column):  # noqa: D102
        names = tf.strings.split(column)  # [B, (W)]
        return names.with_flat_values(super().encode(names.flat_values))

    def is_valid(self, encoded):
        """Returns which examples have no label that is not among the names, `[B]`."""
        return tf.reduce_all(encoded.with_flat_values(encoded.flat_values > WRONG), axis=1)

    def explain(self):  # noqa: D102
        return f"a label for each word, each one of {', '.join(self.names)}"
