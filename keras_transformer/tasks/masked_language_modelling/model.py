"""Masked language model: an encoder that predicts tokens hidden by masks."""

from collections.abc import Callable
from typing import Any

import keras

from keras_transformer.layers.masks import fitting_masks
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import make_transform, transformed
from keras_transformer.models.heads.next_token import NextTokenLogits
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.models.model import TokenOutput
from keras_transformer.tasks.masked_language_modelling.config import MaskedLanguageModelConfig
from keras_transformer.tensors import Tensor


class MaskedTokenLogits(NextTokenLogits):
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


@keras.saving.register_keras_serializable(package="keras_transformer")
class MaskedLanguageModel(TokenOutput, EncoderModel):
    """The encoder of Fig. 1 with logits of the vocabulary at each position.

    Args:
        config: A `MaskedLanguageModelConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Token ids `[B, S]`, integer, each text ending in `eos_id` and then padding. Masks
            hide some of its tokens.

    Returns:
        Logits `[B, S, V]` of the token at each position; float32 under mixed-precision policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import MaskedLanguageModel, MaskedLanguageModelConfig
        >>> config = MaskedLanguageModelConfig.preset("tiny", vocab_size=100)
        >>> MaskedLanguageModel(config)(np.ones((2, 7), "int32")).shape
        TensorShape([2, 7, 100])

    Reference: Devlin et al. (2019), BERT, section 3.1.

    Differs from the paper, which has no masks; the blocks, their dropout and the embedding are
    those of the paper (sections 3.1, 3.4, 3.5 and 5.4).
    """

    config_class = MaskedLanguageModelConfig
    input_class, head_class = EmbeddedTokens, MaskedTokenLogits
    default_name = "masked_language_model"

    @classmethod
    def make_head(cls, config: Any, policy: Any, kernels: Any, embeddings: Any = ()) -> Any:  # noqa: D102
        return cls.head_class(config, policy, kernels, embedding=next(iter(embeddings), None))

    @fitting_masks()
    def hidden_states(
        self,
        inputs: Tensor,
        training: bool | None = None,
        cutoff: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Returns the input of the output weights, `[B, S, E]`.

        Args:
            inputs: The inputs of the model.
            training: Whether dropout is active.
            cutoff: Function from token ids, as they are embedded, to a boolean tensor of their
                shape: which embeddings are kept, as in `PositionalEmbedding`. `None`: all.
        """
        x = self.parts.input(inputs, training=training, cutoff=cutoff)  # [B, S, D]
        x = self.encoder(x, self.parts.input.padding_mask(inputs), training=training)
        return self.parts.head.before_weights(x)  # [B, S, E]
