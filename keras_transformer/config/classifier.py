"""`ClassifierConfig`, the configuration of an encoder that labels texts."""

import dataclasses
from typing import Literal

from keras_transformer.config.stack import StackConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassifierConfig(StackConfig):
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

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "labels", checked_labels(self.labels))

    @property
    def num_labels(self):
        """Number of classes C."""
        return len(self.labels)


def checked_labels(labels):
    """Returns names of classes as a tuple: JSON knows lists only.

    Raises:
        ValueError: If they are not at least two different strings, each once.
    """
    names = tuple(labels) if isinstance(labels, (list, tuple)) else ()
    if len(set(names)) < 2 or not all(isinstance(label, str) for label in names):
        raise ValueError(
            f"`labels` must be at least two different strings. Received: labels={labels!r}."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"`labels` must each be there once. Received: labels={labels!r}.")
    return names
