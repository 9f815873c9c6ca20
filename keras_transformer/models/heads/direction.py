"""`Direction`, the first features of a vector, scaled to unit length."""

from typing import Any

import keras
from keras import ops

from keras_transformer.tensors import Shape, Tensor

SMALLEST = 1e-24  # of a squared length, so that a vector of zeros stays one


@keras.saving.register_keras_serializable(package="keras_transformer")
class Direction(keras.Layer):
    """The first features of vectors, optionally scaled to unit length.

    Args:
        dimensions: Number of features N. `None`: all.
        normalize: Whether to divide by the Euclidean length.

    Call arguments:
        x: `[B, D]`, floating.

    Returns:
        `[B, N]`. A vector of zeros stays one.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models.heads.direction import Direction
        >>> x = np.array([[3.0, 4.0, 9.0]], "float32")
        >>> [f"{value:.2f}" for value in Direction(dimensions=2)(x).numpy()[0]]
        ['0.60', '0.80']
    """

    def __init__(self, dimensions=None, normalize=True, **kwargs):
        super().__init__(**kwargs)
        self.dimensions, self.normalize = dimensions, normalize

    def call(self, x) -> Tensor:  # noqa: D102
        if self.dimensions is not None:
            x = x[:, : self.dimensions]  # [B, N]
        if not self.normalize:
            return x
        squares = ops.sum(ops.square(x), axis=1, keepdims=True)  # [B, 1]
        return x * ops.rsqrt(ops.maximum(squares, SMALLEST))

    def compute_output_shape(self, x_shape) -> Shape:  # noqa: D102
        width = x_shape[-1] if self.dimensions is None else self.dimensions
        return x_shape[0], width

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        own = {"dimensions": self.dimensions, "normalize": self.normalize}
        return {**super().get_config(), **own}
