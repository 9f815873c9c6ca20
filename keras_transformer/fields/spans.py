"""Parts of a text, by their first and their last token."""

import tensorflow as tf

from keras_transformer.fields.field import Field


class Spans(Field):
    """Places of the first and of the last token of a part of a text.

    Call arguments of `encode`:
        column: Integers, `[B, 2]`, below 0 where a text does not have the part.

    Returns of `encode`:
        The same, int32.
    """

    item_shape = (2,)
    padding = -1

    def encode(self, column):  # noqa: D102
        return tf.ensure_shape(tf.cast(column, tf.int32), [None, 2])

    def is_valid(self, encoded):
        """Returns which texts have both ends, `[B]`."""
        return tf.reduce_all(encoded >= 0, axis=1)

    def explain(self):  # noqa: D102
        return "a part of the text that begins at the place given"
