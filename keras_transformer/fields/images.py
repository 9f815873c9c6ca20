"""Images of one size."""

from typing import Any

import tensorflow as tf

from keras_transformer.fields.field import Field
from keras_transformer.tensors import Tensor


class Images(Field):
    """Images of one size, stored as uint8.

    Args:
        height, width: Size of an image, in pixels.
        channels: Number of values of a pixel, each from 0 to 255.

    Call arguments of `encode`:
        column: `[B, height, width, channels]`, uint8.

    Returns of `encode`:
        `column`, with a static shape.
    """

    dtype = "uint8"

    def __init__(self, height: int, width: int, channels: int):
        self.item_shape = (height, width, channels)

    def encode(self, column: Tensor) -> Tensor:  # noqa: D102
        return tf.ensure_shape(tf.cast(column, tf.uint8), [None, *self.item_shape])

    def explain(self) -> str:  # noqa: D102
        return "an image of {} x {} pixels with {} channels".format(*self.item_shape)

    def identity(self) -> dict[str, Any]:  # noqa: D102
        return {**super().identity(), "shape": list(self.item_shape)}
