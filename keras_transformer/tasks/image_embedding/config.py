"""Configurations of an `ImageEmbedder`: its head and the whole model."""

import dataclasses
from typing import Literal

from keras_transformer.arguments import documented, option
from keras_transformer.config.parts import Part
from keras_transformer.config.patches import PatchInput, PatchModelConfig
from keras_transformer.config.stack import ENCODER
from keras_transformer.config.vectors import VectorOptions


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageVectorHead(VectorOptions):
    """Configuration of a head that represents an image by one vector.

    Args:
        **options: See `help(ImageVectorHead)`.
    """

    pooling: Literal["class", "mean", "max", "attention"] = option(
        "class",
        """Pooling of the encoder's output: `"class"`, the output for a learned class token before
        the patches; `"mean"` or `"max"` over the patches; or `"attention"`, a mean with learned
        weights.""",
    )

    @property
    def has_class_token(self) -> bool:
        """`True` if a learned class token precedes the patches."""
        return self.pooling == "class"


class ImageEmbedderConfig(PatchModelConfig):
    """Configuration of an `ImageEmbedder`.

    Args:
        **options: Options of `PatchInput`, `StackConfig`, `BlockConfig` and `ImageVectorHead`.
            `max_length` follows from the number of patches.

    Example:
        >>> from keras_transformer.models import ImageEmbedderConfig
        >>> config = ImageEmbedderConfig.preset("tiny", image_height=32, image_width=48,
        ...     patch_size=8, dimensions=64)
        >>> config.max_length, config.head.dimensions
        (25, 64)
    """

    description = {
        "input": Part(PatchInput()),
        "encoder": ENCODER,
        "head": Part(ImageVectorHead()),
    }
