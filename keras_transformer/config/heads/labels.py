"""Configurations of heads that predict class labels: of tokens, of texts and of images."""

import dataclasses
from typing import Annotated, Any, Literal

from keras_transformer.arguments import documented, option
from keras_transformer.checks import check_activation
from keras_transformer.config.block import Count
from keras_transformer.config.heads.linear import LinearHeadConfig
from keras_transformer.config.heads.pooling import POOLING, Pooling

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
class LabelsHead(TokenLabelsHead):
    """Configuration of a head that predicts a class label for a whole text.

    Args:
        **options: See `help(LabelsHead)`.
    """

    labels: tuple = option(("0", "1"), LABELS, set_by="data")
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
class ImageLabelsHead(LabelsHead):
    """Configuration of a head that predicts a class label for an image.

    Args:
        **options: See `help(ImageLabelsHead)`.
    """

    pooling: Literal["class", "mean", "max", "attention"] = option(
        "class",
        """Pooling of the encoder's output: `"class"`, the output for a learned class token
        before the patches; `"mean"` or `"max"` over the patches; or `"attention"`, a mean with
        learned weights.""",
    )
    classifiers: Count = option(
        1,
        """Number of linear classifiers, for `pooling="class"`: the first one reads the output for
        the class token, the second one that for the next of the `class_tokens`, and the logits are
        the mean of theirs. 2: as in DeiT with distillation.""",
    )

    def check_with(self, config: Any) -> None:  # noqa: D102
        if self.classifiers > max(1, config.leading_tokens):
            raise ValueError(
                "`classifiers` must be at most `class_tokens`, because each one reads the output "
                f'for a token, and 1 without `pooling="class"`. Received: '
                f"classifiers={self.classifiers}, class_tokens={config.input.class_tokens}, "
                f"pooling={self.pooling!r}."
            )

    @property
    def has_class_token(self) -> bool:
        """`True` if a learned class token precedes the patches."""
        return self.pooling == "class"


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
