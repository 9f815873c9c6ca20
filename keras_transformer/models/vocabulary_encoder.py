"""`VocabularyEncoder`, the base of encoders whose head has output weights of the vocabulary."""

from typing import Any

from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.vocabulary import VocabularyLogits
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.models.model import TokenOutput


class VocabularyEncoder(TokenOutput, EncoderModel):
    """An encoder of a text with a `VocabularyLogits` head, whose weights may be tied."""

    input_class, head_class = EmbeddedTokens, VocabularyLogits

    @classmethod
    def make_head(cls, config: Any, policy: Any, kernels: Any, embeddings: Any = ()) -> Any:  # noqa: D102
        return cls.head_class(config, policy, kernels, embedding=next(iter(embeddings), None))
