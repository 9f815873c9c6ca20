"""`VocabularyEncoder`, the base of encoders whose head has output weights of the vocabulary."""

from collections.abc import Callable
from typing import Any

from keras_transformer.layers.masks import fitting_masks
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.vocabulary import VocabularyLogits
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.models.model import TokenOutput
from keras_transformer.tensors import Tensor


class VocabularyEncoder(TokenOutput, EncoderModel):
    """An encoder of a text with a `VocabularyLogits` head, whose weights may be tied."""

    input_class, head_class = EmbeddedTokens, VocabularyLogits

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
