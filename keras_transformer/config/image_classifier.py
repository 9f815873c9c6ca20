"""`ImageClassifierConfig`, the configuration of an encoder that labels images."""

import dataclasses
from typing import Literal

from keras_transformer.config.block import Count
from keras_transformer.config.labels import Labelled
from keras_transformer.config.model import ModelConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageClassifierConfig(Labelled, ModelConfig):
    """Everything that decides the shape and the arithmetic of an `ImageClassifier`.

    The arguments are those of `ModelConfig` and of `BlockConfig`, and those below. `max_length`
    follows from them. Of images sinusoidal positions are those of row and column.

    Args:
        labels: Names of the classes, in the order of the logits; at least two, each once.
        image_height: Height of an image, in pixels.
        image_width: Width of an image, in pixels.
        channels: Numbers of a pixel: 1 for grey, 3 for red, green and blue.
        resize: Whether an image file of another size is resized, and not refused.
        patch_size: Height and width of a patch, in pixels. Both sizes of an image must be multiples
            of it.
        pooling: What stands for the image: `"class"`, the output for a learned token before its
            patches; `"mean"` or `"max"` over those of its patches; or `"attention"`, a mean with
            weights that are learned.

    Example:
        >>> from keras_transformer import ImageClassifierConfig
        >>> config = ImageClassifierConfig.preset("tiny", labels=("cat", "dog"), image_height=32,
        ...     image_width=48, patch_size=8)
        >>> config.grid
        (4, 6)
    """

    labels: tuple = ("0", "1")
    image_height: Count = 224
    image_width: Count = 224
    channels: Count = 3
    resize: bool = False
    patch_size: Count = 16
    pooling: Literal["class", "mean", "max", "attention"] = "class"

    def __post_init__(self):
        super().__post_init__()
        rows, columns = self.grid
        object.__setattr__(self, "max_length", max(1, rows * columns + self.has_class_token))

    @classmethod
    def without_effect(cls, fields):  # noqa: D102
        return {"max_length"}

    @property
    def has_class_token(self):
        """Whether a learned token stands before the patches."""
        return self.pooling == "class"

    @property
    def shape(self):
        """Height, width and channels of an image."""
        return self.image_height, self.image_width, self.channels

    @property
    def grid(self):
        """Rows and columns of the patches."""
        return self.image_height // self.patch_size, self.image_width // self.patch_size
