"""The base of models of one encoder over tokens."""

from keras_transformer.layers.masks import fitting_masks
from keras_transformer.models.base import Column, TokenModel, named_weights


class EncoderModel(TokenModel):
    """A `TokenModel` with the layers `mask`, `embedding` and `encoder`, and a head after them."""

    @fitting_masks()  # they are made of the same tokens
    def call(self, inputs, training=None, mask=None):  # noqa: D102
        return super().call(inputs, training=training, mask=mask)

    @property
    def head(self):
        """The layers after the encoder, in order."""
        raise NotImplementedError

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
        x = self.embedding(inputs, training=False)  # [B, S, D]
        allowed = self.mask(inputs)  # [B, 1, S]
        _, weights = self.encoder(x, allowed, return_weights=True, training=False)
        return named_weights(self.encoder, weights)
