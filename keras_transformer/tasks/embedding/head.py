"""Head that represents a whole text by one vector."""

from typing import Any

import keras
from keras import ops

from keras_transformer.models.heads.head import Head, output_dtype
from keras_transformer.models.heads.pooling import Pooling
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
        >>> from keras_transformer.tasks.embedding.head import Direction
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


class PooledVector(Head):
    """Pooling over the encoder's output, in float32 from there on."""

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        dtype = output_dtype(policy)
        return {
            "pooling": Pooling(config.pooling, dtype=policy, name="pooling"),
            "vector": Direction(config.dimensions, config.normalize, dtype=dtype, name="vector"),
        }

    def __call__(self, hidden, inputs=None, allowed=None) -> Tensor:  # noqa: D102
        pooling = self.layers["pooling"]
        x = pooling(hidden) if allowed is None else pooling(hidden, allowed)  # [B, D]
        return self.layers["vector"](x)  # [B, N]

    @property
    def drawn(self) -> tuple[keras.Layer, ...]:  # noqa: D102
        return self.layers["pooling"], self.layers["vector"]
