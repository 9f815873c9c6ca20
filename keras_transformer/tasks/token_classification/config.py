"""Configuration of a `TokenClassifier`."""

from keras_transformer.config.label_heads import TokenLabelsHead
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part
from keras_transformer.config.stack import ENCODER
from keras_transformer.config.tokens import TokenInput


class TokenClassifierConfig(ModelConfig):
    """Configuration of a `TokenClassifier`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `TokenLabelsHead`.

    Example:
        >>> from keras_transformer.models import TokenClassifierConfig
        >>> config = TokenClassifierConfig.preset("tiny", labels=("O", "B-DATE", "I-DATE"))
        >>> config.head.num_labels
        3
    """

    description = {
        "input": Part(TokenInput()),
        "encoder": ENCODER,
        "head": Part(TokenLabelsHead()),
    }
