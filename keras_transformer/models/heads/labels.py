"""Heads of class labels: one for a whole input, or one for each token."""

import keras

from keras_transformer.layers.dropout import Dropout
from keras_transformer.models.heads.head import Head, make_logits
from keras_transformer.models.heads.pooling import Pooling


class TokenLabels(Head):
    """A linear map of each of the encoder's outputs."""

    def make_layers(self, config, policy, kernels, embedding):  # noqa: D102
        return {
            "dropout": Dropout(config.dropout, dtype=policy, name="dropout"),
            "output_layer": keras.layers.Dense(config.num_labels, dtype=policy, name="output"),
            "logits": make_logits(policy),
        }

    def __call__(self, hidden, inputs=None, allowed=None):  # noqa: D102
        x = self.layers["dropout"](hidden)  # [B, S, D]
        return self.layers["logits"](self.layers["output_layer"](x))  # [B, S, C]


class Labels(TokenLabels):
    """Pooling over the encoder's outputs and a linear map of the result."""

    def make_layers(self, config, policy, kernels, embedding):  # noqa: D102
        # A class token stands before all others.
        kind = "first" if config.pooling == "class" else config.pooling
        layers = {"pooling": Pooling(kind, dtype=policy, name="pooling")}
        if config.pooler:
            width = config.encoder.d_model
            layers["pooler"] = keras.layers.Dense(width, "tanh", dtype=policy, name="pooler")
        return {**layers, **super().make_layers(config, policy, kernels, embedding)}

    def __call__(self, hidden, inputs=None, allowed=None):  # noqa: D102
        pooling = self.layers["pooling"]
        x = pooling(hidden) if allowed is None else pooling(hidden, allowed)  # [B, D]
        if "pooler" in self.layers:
            x = self.layers["pooler"](x)  # [B, D]
        return super().__call__(x)  # [B, C]

    @property
    def drawn(self):  # noqa: D102
        return self.layers["pooling"], *super().drawn
