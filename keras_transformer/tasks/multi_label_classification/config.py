"""Configurations of a `MultiLabelClassifier`: its head and the whole model."""

import dataclasses
from typing import Annotated

from keras_transformer.arguments import documented, option
from keras_transformer.checks import check_share
from keras_transformer.config.label_heads import LabelsHead
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part
from keras_transformer.config.stack import ENCODER
from keras_transformer.config.tokens import TokenInput

SEPARATORS = (",", ";", "|", "/")  # of which a converted model has the first that is in no label


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelSetHead(LabelsHead):
    """Configuration of a head that predicts for each label whether a text has it.

    Args:
        **options: See `help(LabelSetHead)`.
    """

    threshold: Annotated[float, check_share] = option(
        0.5,
        """A text has a label if its probability is at least this threshold, which is the same for
        all labels. `keras-transformer threshold` chooses a better threshold for a trained run, or a
        threshold for each label.""",
    )
    separator: str = option(",", "String between the labels of a text.", set_by="data")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.separator, str) or not self.separator:
            raise ValueError(
                "`separator` must be a string that is not empty. "
                f"Received: separator={self.separator!r}."
            )
        label = next((label for label in self.labels if self.separator in label), None)
        if label is not None:
            raise ValueError(
                "`labels` must not contain the `separator` between the labels of a text. "
                f"Received: the label {label!r}, separator={self.separator!r}."
            )


def separator_for(labels) -> str:
    """Returns a separator that is in no label.

    Raises:
        ValueError: If each of `SEPARATORS` is in a label.
    """
    for separator in SEPARATORS:
        if not any(separator in label for label in labels):
            return separator
    raise ValueError(f"one of {' '.join(SEPARATORS)} must be in no label. Received: {labels!r}.")


class MultiLabelClassifierConfig(ModelConfig):
    """Configuration of a `MultiLabelClassifier`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `LabelSetHead`.

    Example:
        >>> from keras_transformer.models import MultiLabelClassifierConfig
        >>> labels = ("sports", "politics", "science")
        >>> config = MultiLabelClassifierConfig.preset("tiny", vocab_size=4000, labels=labels)
        >>> config.head.threshold
        0.5
    """

    description = {
        "input": Part(TokenInput()),
        "encoder": ENCODER,
        "head": Part(LabelSetHead()),
    }
