"""Configurations of an `ImageClassifier`: patches of images, its head and the whole model."""

import dataclasses
from typing import Any, Literal

from keras_transformer.arguments import documented, option
from keras_transformer.checks import Count
from keras_transformer.config.label_heads import LabelsHead
from keras_transformer.config.parts import Part
from keras_transformer.config.patches import PatchInput, PatchModelConfig
from keras_transformer.config.stack import ENCODER


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageLabelsHead(LabelsHead):
    """Configuration of a head that predicts a class label for an image.

    Args:
        **options: See `help(ImageLabelsHead)`.
    """

    pooling: Literal["class", "mean", "max", "attention", "class_mean"] = option(  # ty: ignore[incompatible-attribute-override]
        "class",
        """Pooling of the encoder's output: `"class"`, the output for a learned class token
        before the patches; `"mean"` or `"max"` over the patches; `"attention"`, a mean with
        learned weights; or `"class_mean"`, both the output for the class token and the mean over
        the patches, as in DINOv2 (Oquab et al., 2024).""",
    )
    classifiers: Count = option(
        1,
        """Number of linear classifiers, for `pooling="class"`. Each classifier reads the output for
        one of the `class_tokens`, beginning with the class token. The logits are the mean over the
        classifiers. 2: as in DeiT with distillation.""",
    )

    def check_with(self, config: Any) -> None:  # noqa: D102
        most = config.leading_tokens if self.pooling == "class" else 1
        if self.classifiers > most:
            raise ValueError(
                "`classifiers` must be at most `class_tokens`, because each one reads the output "
                f'for a token, and 1 without `pooling="class"`. Received: '
                f"classifiers={self.classifiers}, class_tokens={config.input.class_tokens}, "
                f"pooling={self.pooling!r}."
            )

    @property
    def has_class_token(self) -> bool:
        """`True` if a learned class token precedes the patches."""
        return self.pooling in ("class", "class_mean")


class ImageClassifierConfig(PatchModelConfig):
    """Configuration of an `ImageClassifier`.

    Args:
        **options: Options of `PatchInput`, `StackConfig`, `BlockConfig` and `ImageLabelsHead`.
            `max_length` follows from the number of patches. Sinusoidal positions encode row and
            column.

    Example:
        >>> from keras_transformer.models import ImageClassifierConfig
        >>> config = ImageClassifierConfig.preset("tiny", labels=("cat", "dog"), image_height=32,
        ...     image_width=48, patch_size=8)
        >>> config.input.grid
        (4, 6)
    """

    description = {
        "input": Part(PatchInput()),
        "encoder": ENCODER,
        "head": Part(ImageLabelsHead()),
    }
