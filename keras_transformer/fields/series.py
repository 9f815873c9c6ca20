"""Windows of a time series."""

from typing import Any

import tensorflow as tf

from keras_transformer.fields.field import Field
from keras_transformer.tensors import Tensor


class Series(Field):
    """Windows of numbers, `[T, F]`, all of the same length.

    Args:
        window: Length T of a window, in steps.
        num_values: Number of values F of a step.

    Call arguments of `encode`:
        column: Numbers, `[B, T, F]`.

    Returns of `encode`:
        `column` as float32.
    """

    dtype = "float32"
    padding = 0.0

    def __init__(self, window: int, num_values: int):
        self.item_shape = (window, num_values)

    def encode(self, column: Tensor) -> Tensor:  # noqa: D102
        return tf.ensure_shape(tf.cast(column, tf.float32), [None, *self.item_shape])

    def is_valid(self, encoded: Any) -> Tensor | None:
        """Returns a boolean `[B]`, true for windows of finite numbers."""
        return tf.reduce_all(tf.math.is_finite(encoded), axis=[1, 2])

    def explain(self) -> str:  # noqa: D102
        return "{} steps of {} finite numbers".format(*self.item_shape)

    def identity(self) -> dict[str, Any]:  # noqa: D102
        return {**super().identity(), "shape": list(self.item_shape)}
