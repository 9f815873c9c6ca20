"""Time series as sequences of vectors: a linear map of every step, and its position."""

import keras

from keras_transformer.checks import check_count, check_rate
from keras_transformer.layers import positions
from keras_transformer.layers.call_checks import check_positions
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.dropout import Dropout


@keras.saving.register_keras_serializable(package="keras_transformer")
class SeriesEmbedding(CompositeLayer):
    """The steps of a series as vectors, with their positions and dropout on the sum.

    `x_t = W s_t + b + p_t`: a linear map of what was measured at a step takes the place of the
    embedding of a token.

    Args:
        d_model: Width of the model, in features.
        position: A `Position`, or the name of one: `"sinusoidal"`, `"learned"` or `"none"`.
        max_length: Positions of the learned table, and of the sinusoidal one where the length of
            the input is not known when the graph is built.
        dropout: Rate on the sum of step and position.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: `[B, T, F]`, floating: F numbers at each of T steps.
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

    def __init__(self, d_model, position="sinusoidal", max_length=512, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        check_count("d_model", d_model)
        check_count("max_length", max_length)
        check_rate("dropout", dropout)
        self.d_model, self.max_length = d_model, max_length
        self.position = positions.get(position)
        self.position.check(self)
        self.dropout_rate = dropout
        self.widths = {}
        # Variance 1 for inputs of variance 1, as embeddings of tokens have: Keras's own initial
        # weights would let positions drown a few numbers.
        self.projection = keras.layers.Dense(
            d_model,
            kernel_initializer="lecun_normal",
            dtype=self.dtype_policy,
            name="projection",
        )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, x_shape):  # noqa: D102
        self.widths = {"x": x_shape[-1]}
        self.projection.build(x_shape)
        self.position.build(self)

    def checked_arguments(self, given):  # noqa: D102
        check_positions(given.get("x"), "x", self, ndim=3)
        return {}

    def call(self, x, training=None):  # noqa: D102
        projected = self.projection(x)  # [B, T, D]
        position = self.position.embed(self, 0, projected)  # [T, D]
        if position is not None:
            projected = projected + position
        return self.dropout(projected, training=training)

    def compute_output_shape(self, x_shape):  # noqa: D102
        return (*x_shape[:2], self.d_model)

    def get_config(self):  # noqa: D102
        return {
            **super().get_config(),
            "d_model": self.d_model,
            "position": positions.serialize(self.position),
            "max_length": self.max_length,
            "dropout": self.dropout_rate,
        }
