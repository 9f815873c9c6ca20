"""Spans of a text, given by their first and last token."""

from typing import Any

import tensorflow as tf

from keras_transformer.fields.field import Field
from keras_transformer.tensors import Tensor


class Spans(Field):
    """Indices of the first and the last token of a span.

    Call arguments of `encode`:
        column: Integers, `[B, 2]`, counted from 0; negative where a text does not contain the span.

    Returns of `encode`:
        `column` as int32.
    """

    item_shape = (2,)
    padding = -1

    def encode(self, column: Tensor) -> Tensor:  # noqa: D102
        return tf.ensure_shape(tf.cast(column, tf.int32), [None, 2])

    def is_valid(self, encoded: Any) -> Tensor | None:
        """Returns a boolean `[B]`, true for texts that contain the span."""
        return tf.reduce_all(encoded >= 0, axis=1)

    def explain(self) -> str:  # noqa: D102
        return "a span of the text that begins at the given position"
