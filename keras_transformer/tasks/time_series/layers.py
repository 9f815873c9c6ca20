"""Time series as sequences of vectors: a linear projection of each step, plus its position."""

from typing import Any

import keras

from keras_transformer import positions
from keras_transformer.checks import check_count
from keras_transformer.layers.call_checks import check_positions
from keras_transformer.layers.inputs.embedding import PositionedEmbedding
from keras_transformer.tensors import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class SeriesEmbedding(PositionedEmbedding):
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
        >>> from keras_transformer.layers import SeriesEmbedding
        >>> SeriesEmbedding(d_model=16)(np.zeros((2, 7, 3), "float32")).shape
        TensorShape([2, 7, 16])

    Differs from the paper, whose inputs are tokens (section 3.4); positions are those of section
    3.5.
    """

    is_linear = True

    def __init__(
        self,
        d_model: int,
        position: str | positions.Position = "sinusoidal",
        max_length: int = 512,
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(d_model, position, dropout, **kwargs)
        check_count("max_length", max_length)
        self.max_length, self.widths = max_length, {}
        self.position.check(self)

    def build(self, x_shape: Shape) -> None:  # noqa: D102
        self.widths = {"x": x_shape[-1]}
        self.projection.build(x_shape)
        self.position.build(self)

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        check_positions(given.get("x"), "x", self, ndim=3)
        return {}

    def call(self, x: Tensor, training: bool | None = None) -> Tensor:  # noqa: D102
        return self.with_position(self.projection(x), training)  # [B, T, D]

    def compute_output_shape(self, x_shape: Shape) -> Shape:  # noqa: D102
        return (*x_shape[:2], self.d_model)

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {**super().get_config(), "max_length": self.max_length}
