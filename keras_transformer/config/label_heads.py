"""Configurations of linear heads, of the pooling before them, and of heads that predict labels."""

import dataclasses
from typing import Annotated, Literal

from keras_transformer.arguments import documented, option
from keras_transformer.checks import check_activation
from keras_transformer.config.parts import PartConfig


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearHeadConfig(PartConfig):
    """Configuration of a head whose last layer is a linear map from the encoder's output to logits.

    Args:
        **options: See `help(LinearHeadConfig)`.
    """

    transform: bool = option(
        False,
        """Adds a dense layer with `transform_activation` and a normalisation before the linear
        layer, as in ModernBERT.""",
    )
    transform_activation: Annotated[str, check_activation] = option(
        "gelu", 'Activation of the `transform`: `"gelu"` or another one, as for `activation`.'
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.transform and self.transform_activation != "gelu":
            raise ValueError(
                "`transform_activation` has no effect without `transform`. "
                f"Received: transform_activation={self.transform_activation!r}."
            )


Pooling = Literal["mean", "max", "first", "last", "attention"]
POOLING = (
    "mean",
    """Pooling of the encoder's output: `"mean"` or `"max"` over the tokens of a text, the `"first"`
    or the `"last"` token, or `"attention"`, a mean with learned weights.""",
)


LABELS = "Class labels, in the order of the logits; at least two, all different."


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenLabelsHead(LinearHeadConfig):
    """Configuration of a head that predicts a class label for each token.

    Args:
        **options: See `help(TokenLabelsHead)`.
    """

    labels: tuple = option(("O", "B-X", "I-X"), LABELS, set_by="data")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "labels", _checked_labels(self.labels))

    @property
    def num_labels(self) -> int:
        """Number of classes C."""
        return len(self.labels)


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class PooledHead(LinearHeadConfig):
    """Configuration of a head that predicts logits of a whole text from its pooled tokens.

    Args:
        **options: See `help(PooledHead)`.
    """

    pooling: Pooling = option(*POOLING)
    pooler: bool = option(
        False,
        """Adds a dense layer with `pooler_activation` between pooling and classification, as in
        BERT.""",
    )
    pooler_activation: Annotated[str, check_activation] = option(
        "tanh",
        """Activation of the `pooler`: `"tanh"` as in BERT and RoBERTa, `"relu"` as in DistilBERT,
        or another one, as for `activation`.""",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.pooler and self.pooler_activation != "tanh":
            raise ValueError(
                "`pooler_activation` has no effect without `pooler`. "
                f"Received: pooler_activation={self.pooler_activation!r}."
            )


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelsHead(PooledHead, TokenLabelsHead):
    """Configuration of a head that predicts a class label for a whole text.

    Args:
        **options: See `help(LabelsHead)`.
    """

    labels: tuple = option(("0", "1"), LABELS, set_by="data")


def _checked_labels(value):
    """Returns labels as a tuple, also from a list, which JSON has in its place.

    Raises:
        ValueError: If they are not at least two different strings, or a label occurs twice.
    """
    labels = tuple(value) if isinstance(value, (list, tuple)) else ()
    if len(set(labels)) < 2 or not all(isinstance(label, str) for label in labels):
        raise ValueError(
            f"`labels` must be at least two different strings. Received: labels={value!r}."
        )
    if len(set(labels)) < len(labels):
        raise ValueError(f"`labels` must not contain duplicates. Received: labels={value!r}.")
    return labels
