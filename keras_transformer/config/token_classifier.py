"""`TokenClassifierConfig`, the configuration of an encoder that labels the words of a text."""

import dataclasses

from keras_transformer.config.labels import Labelled
from keras_transformer.config.stack import StackConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenClassifierConfig(Labelled, StackConfig):
    """Everything that decides the shape and the arithmetic of a `TokenClassifier`.

    The arguments are those of `StackConfig` and of `BlockConfig`, and:

    Args:
        labels: Names of the classes, in the order of the logits; at least two, each once.

    Example:
        >>> from keras_transformer import TokenClassifierConfig
        >>> config = TokenClassifierConfig.preset("tiny", labels=("O", "B-DATE", "I-DATE"))
        >>> config.num_labels
        3
    """

    labels: tuple = ("O", "B-X", "I-X")
