"""Head with logits of the vocabulary at each position of a text that an encoder reads."""

from typing import Any

import keras

from keras_transformer.models.heads.head import make_transform, transformed
from keras_transformer.models.heads.next_token import NextTokenLogits
from keras_transformer.tensors import Tensor


class VocabularyLogits(NextTokenLogits):
    """Logits of the token at each position, after a dense layer and a normalisation.

    Args:
        embedding: The embedding of the tokens; if weights are tied, its table is also the output
            weights.
    """

    def make_layers(self, config, policy, kernels, embedding) -> dict[str, Any]:  # noqa: D102
        width = config.input.embedding_size or config.encoder.d_model
        return {
            **make_transform(config, policy, width),
            **super().make_layers(config, policy, kernels, embedding),
        }

    def before_weights(self, hidden) -> Tensor:
        """Returns the input of the output weights, `[B, S, E]`, for hidden states `[B, S, D]`."""
        return transformed(hidden, self.layers)

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        return super().__call__(self.before_weights(hidden), inputs)  # [B, S, V]

    @property
    def drawn(self) -> tuple[keras.Layer, ...]:  # noqa: D102
        names = [name for name in ("transform", "transform_norm") if name in self.layers]
        return *(self.layers[name] for name in names), *super().drawn
