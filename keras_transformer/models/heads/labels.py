"""Heads that predict logits of a whole input, such as one for each class label."""

from typing import Any

import keras

from keras_transformer import activations
from keras_transformer.models.heads.head import LinearHead
from keras_transformer.models.heads.pooling import Pooling
from keras_transformer.tensors import Tensor


class PooledLogits(LinearHead):
    """Pooling over the encoder's output and a linear map of the result to logits."""

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        layers = {"pooling": self.make_pooling(config, policy)}
        if config.head.pooler:
            width, activation = (
                config.encoder.d_model,
                activations.get(config.head.pooler_activation),
            )
            layers["pooler"] = keras.layers.Dense(width, activation, dtype=policy, name="pooler")
        return {**layers, **super().make_layers(config, policy, kernels)}

    def make_pooling(self, config, policy) -> keras.Layer:
        """Returns the layer that pools the encoder's output `[B, S, D]`."""
        return Pooling(config.head.pooling, dtype=policy, name="pooling")

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        pooling = self.layers["pooling"]
        x = pooling(hidden) if padding_mask is None else pooling(hidden, padding_mask)  # [B, D]
        return self.classified(x)  # [B, C]

    def classified(self, hidden, output="output_layer") -> Tensor:  # noqa: D102
        if "pooler" in self.layers:
            hidden = self.layers["pooler"](hidden)  # [B, D]
        return super().classified(hidden, output)

    @property
    def drawn(self) -> tuple[keras.Layer, ...]:  # noqa: D102
        return self.layers["pooling"], *super().drawn


class LabelLogits(PooledLogits):
    """Pooling over the encoder's output and a linear classifier of the result."""

    def units(self, config) -> int:  # noqa: D102
        return config.head.num_labels
