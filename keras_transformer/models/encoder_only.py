"""The base of models of one encoder over tokens."""

import keras

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.encoder import Encoder
from keras_transformer.layers.masks import PaddingMask, fitting_masks
from keras_transformer.models.base import (
    Column,
    TokenModel,
    make_embedding,
    make_logits,
    named_weights,
)


class EncoderModel(TokenModel):
    """A `TokenModel` of an encoder and a linear map to `config.labels`, of each token.

    A model whose labels are those of a whole text has a layer `pooling` before the linear map.
    """

    def _make_layers(self, config, policy, kernels):
        return {
            "mask": PaddingMask(config.pad_id, name="mask"),
            "embedding": make_embedding(config, config.vocab_size, policy, kernels, "embedding"),
            "encoder": Encoder.from_stack(
                config.stack, dtype=policy, kernels=kernels, name="encoder"
            ),
            **self._make_pooling(config, policy),
            "dropout": Dropout(config.dropout, dtype=policy, name="dropout"),
            "output_layer": keras.layers.Dense(config.num_labels, dtype=policy, name="output"),
            "logits": make_logits(policy),
        }

    def _make_pooling(self, config, policy):
        """The layer `pooling` by its name, or nothing."""
        return {}

    def _connect(self, config, layers, inputs):
        allowed = layers["mask"](inputs)  # [B, 1, S]
        x = layers["encoder"](layers["embedding"](inputs), allowed)  # [B, S, D]
        if "pooling" in layers:
            x = layers["pooling"](x, allowed)  # [B, D]
        return layers["logits"](layers["output_layer"](layers["dropout"](x)))  # [B, C], [B, S, C]

    @fitting_masks()  # they are made of the same tokens
    def call(self, inputs, training=None, mask=None):  # noqa: D102
        return super().call(inputs, training=training, mask=mask)

    @property
    def head(self):
        """The layers after the encoder that are drawn, in order."""
        return self.output_layer, self.logits

    def embed(self, inputs):
        """Returns what the encoder reads, `[B, S, D]`, without dropout."""
        return self.embedding(inputs, training=False)

    @property
    def columns(self):  # noqa: D102
        return (Column("text", "S", self.embedding, self.encoder, self.head),)

    @fitting_masks()
    def attention_weights(self, inputs):
        """Returns the attention weights of every layer and head, without dropout.

        Args:
            inputs: As for a call of the model.

        Returns:
            Dictionary from `"encoder/block_0/self_attention"` and so on to `[B, H, S, S]`: text,
            head, attending position, attended position.
        """
        x = self.embed(inputs)  # [B, S, D]
        allowed = self.mask(inputs)  # [B, 1, S]
        _, weights = self.encoder(x, allowed, return_weights=True, training=False)
        return named_weights(self.encoder, weights)
