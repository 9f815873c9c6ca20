"""Time series as sequences of vectors: a linear projection of each step, plus its position."""

from typing import Any

import keras

from keras_transformer.checks import check_count, check_rate
from keras_transformer.layers import positions
from keras_transformer.layers.call_checks import check_positions
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.dropout import Dropout
from keras_transformer.tensors import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class SeriesEmbedding(CompositeLayer):
    """Embedding of the steps of a time series, plus their positions, with dropout on the sum.

    `x_t = W s_t + b + p_t`: a linear projection of the values of a step replaces the embedding of a
    token.

    Args:
        d_model: Width of the model, in features.
        position: A `Position`, or its name: `"sinusoidal"`, `"learned"` or `"none"`.
        max_length: Number of positions of a learned table, and of a sinusoidal one if the length of
            the input is not known when the graph is built.
        dropout: Dropout rate on the sum of step and position.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: `[B, T, F]`, floating: F values at each of T steps.
        training: Whether dropout is active.

    Returns:
        `[B, T, D]`.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import SeriesEmbedding
        >>> SeriesEmbedding(d_model=16)(np.zeros((2, 7, 3), "float32")).shape
        TensorShape([2, 7, 16])

    Differs from the paper, whose inputs are tokens (section 3.4); positions are those of section
    3.5.
    """

    def __init__(
        self,
        d_model: int,
        position: str | positions.Position = "sinusoidal",
        max_length: int = 512,
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        check_count("d_model", d_model)
        check_count("max_length", max_length)
        check_rate("dropout", dropout)
        self.d_model, self.max_length = d_model, max_length
        self.position = positions.get(position)
        self.position.check(self)
        self.dropout_rate = dropout
        self.widths = {}
        # Inputs of variance 1 get outputs of variance 1, like token embeddings. With Keras's
        # default weights, outputs of few inputs would be small compared with the positions.
        self.projection = keras.layers.Dense(
            d_model,
            kernel_initializer="lecun_normal",
            dtype=self.dtype_policy,
            name="projection",
        )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, x_shape: Shape) -> None:  # noqa: D102
        self.widths = {"x": x_shape[-1]}
        self.projection.build(x_shape)
        self.position.build(self)

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        check_positions(given.get("x"), "x", self, ndim=3)
        return {}

    def call(self, x: Tensor, training: bool | None = None) -> Tensor:  # noqa: D102
        projected = self.projection(x)  # [B, T, D]
        position = self.position.embed(self, 0, projected)  # [T, D]
        if position is not None:
            projected = projected + position
        return self.dropout(projected, training=training)

    def compute_output_shape(self, x_shape: Shape) -> Shape:  # noqa: D102
        return (*x_shape[:2], self.d_model)

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {
            **super().get_config(),
            "d_model": self.d_model,
            "position": positions.serialize(self.position),
            "max_length": self.max_length,
            "dropout": self.dropout_rate,
        }
