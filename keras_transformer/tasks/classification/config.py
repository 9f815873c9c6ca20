"""Configuration of a `TextClassifier`."""

from keras_transformer.config.label_heads import LabelsHead
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part
from keras_transformer.config.stack import ENCODER
from keras_transformer.config.tokens import TokenInput


class ClassifierConfig(ModelConfig):
    """Configuration of a `TextClassifier`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `LabelsHead`.

    Example:
        >>> from keras_transformer.models import ClassifierConfig
        >>> config = ClassifierConfig.preset("tiny", vocab_size=4000, labels=("bad", "good"))
        >>> config.head.num_labels
        2
    """

    description = {
        "input": Part(TokenInput()),
        "encoder": ENCODER,
        "head": Part(LabelsHead()),
    }
