"""`ClassifierConfig`, the configuration of an encoder that labels texts."""

import dataclasses
from typing import Literal

from keras_transformer.config.labels import Labelled
from keras_transformer.config.stack import StackConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassifierConfig(Labelled, StackConfig):
    """Everything that decides the shape and the arithmetic of a `TextClassifier`.

    The arguments are those of `StackConfig` and of `BlockConfig`, and:

    Args:
        labels: Names of the classes, in the order of the logits; at least two, each once.
        pooling: What of the encoder's output stands for the text: `"mean"` or `"max"` over its
            tokens, `"first"`, the first token, or `"attention"`, a mean with weights that are
            learned.

    Example:
        >>> from keras_transformer import ClassifierConfig
        >>> config = ClassifierConfig.preset("tiny", vocab_size=4000, labels=("bad", "good"))
        >>> config.num_labels
        2
    """

    labels: tuple = ("0", "1")
    pooling: Literal["mean", "max", "first", "attention"] = "mean"
