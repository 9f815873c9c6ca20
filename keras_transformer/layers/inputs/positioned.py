"""Base class of the embeddings of inputs: vectors of the model's width, plus their positions."""

from typing import Any

import keras

from keras_transformer import positions
from keras_transformer.checks import check_count, check_rate
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.dropout import Dropout
from keras_transformer.positions.doubled import mark
from keras_transformer.tensors import Tensor
from keras_transformer.variants import plain


class PositionedEmbedding(CompositeLayer):
    """Base class of layers that embed an input and add positions, with dropout on the sum.

    The constructor of a subclass ends with `self.position.check(self)`, which reads its sizes.

    Args:
        d_model: Width of the model, in features.
        position: A `Position`, or its name.
        dropout: Dropout rate on the sum.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Attributes:
        is_linear: Whether the embedding is a linear layer, `projection`.
    """

    is_linear = False

    def __init__(
        self,
        d_model: int,
        position: str | positions.Position,
        dropout: float,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        check_count("d_model", d_model)
        check_rate("dropout", dropout)
        self.d_model, self.dropout_rate = d_model, dropout
        self.position = positions.for_embedding(position)
        if self.is_linear:
            # Inputs of variance 1 get outputs of variance 1, like token embeddings. With Keras's
            # default weights, outputs of few inputs would be small compared with the positions.
            self.projection = keras.layers.Dense(
                d_model,
                kernel_initializer="lecun_normal",
                dtype=self.dtype_policy,
                name="projection",
            )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """Calls the layer, and notes on its output which position it added."""
        outputs = super().__call__(*args, **kwargs)
        mark(outputs, self.position)
        return outputs

    def with_position(self, x: Tensor, training: bool | None = None) -> Tensor:
        """Returns embeddings `[B, T, D]` plus the positions from 0 on, after dropout."""
        position = self.position.embed(self, 0, x)  # [T, D]
        return self.dropout(x if position is None else x + position, training=training)

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {
            **super().get_config(),
            "d_model": self.d_model,
            "position": plain(self.position),
            "dropout": self.dropout_rate,
        }
