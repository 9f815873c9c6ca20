"""Patches of images: `PatchInput`, and what configurations of models of images have in common."""

import dataclasses
import typing
from typing import Annotated, Any, Literal, TypeVar

from keras_transformer.arguments import documented, option
from keras_transformer.checks import Count, check_choice, is_integer
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import PartConfig
from keras_transformer.config.stack import StackConfig
from keras_transformer.positions import Binary

Kind = TypeVar("Kind", bound="PatchModelConfig")
LARGEST_EDGE = 65_535  # of a JPEG file
Interpolation = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]


def check_interpolation(name: str, value: Any) -> None:
    """Requires an `Interpolation`, or `None`."""
    if value is not None:
        check_choice(name, value, typing.get_args(Interpolation))


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class PatchInput(PartConfig):
    """Configuration of the patches of an image, whose number is the length of the encoder's input.

    Args:
        **options: See `help(PatchInput)`.
    """

    image_height: Count = option(224, "Height of an image, in pixels.", set_by="data")
    image_width: Count = option(224, "Width of an image, in pixels.", set_by="data")
    channels: Count = option(
        3, "Values of a pixel: 1 for grey, 3 for red, green and blue.", set_by="data"
    )
    resize: bool = option(
        False,
        "Resizes image files of other sizes instead of rejecting them.",
        set_by="data",
        statistic=True,
    )
    interpolation: Annotated[str | None, check_interpolation] = option(
        None,
        """Filter for resizing, with the pixels of Pillow: `"nearest"`, `"box"`, `"bilinear"`,
        `"hamming"`, `"bicubic"` or `"lanczos"`. `None`: bilinear, with the pixels of
        TensorFlow.""",
        set_by="data",
        statistic=True,
    )
    resize_to: tuple = option(
        (),
        """Size to which images are resized before their centre is cropped: height and width, or
        only the length of the shorter edge. Empty: height and width of an image of the model.""",
        set_by="data",
        statistic=True,
    )
    center_crop: bool = option(
        False,
        "Crops images to the pixels at their centre, after resizing.",
        set_by="data",
        statistic=True,
    )
    patch_size: Count = option(
        16,
        """Height and width of a patch, in pixels. Height and width of an image must be multiples
        of it.""",
    )
    class_tokens: Count = option(
        1,
        """Number of learned tokens before the patches, for `pooling="class"` and `"class_mean"`. 2:
        a class token and the distillation token of DeiT. 5: a class token and four registers, in
        which DINOv2 keeps information that belongs to no patch (Darcet et al., 2024).""",
    )

    def __post_init__(self) -> None:
        if isinstance(self.resize_to, list):  # as in JSON
            object.__setattr__(self, "resize_to", tuple(self.resize_to))
        super().__post_init__()
        self._check_steps()

    def check_with(self, config: Any) -> None:  # noqa: D102
        if self.class_tokens > 1 and not config.head.has_class_token:
            raise ValueError(
                '`class_tokens` has no effect without `pooling="class"` or `"class_mean"`. '
                f"Received: class_tokens={self.class_tokens}, pooling={config.head.pooling!r}."
            )

    def _check_steps(self):
        """Requires that every step changes images, and that resized ones are large enough."""
        steps = (
            f"Received: resize={self.resize}, interpolation={self.interpolation!r}, "
            f"resize_to={self.resize_to}, center_crop={self.center_crop}."
        )
        if self.interpolation is not None and not self.resize:
            raise ValueError(f"`interpolation` has no effect without `resize`. {steps}")
        if not self.resize_to:
            if self.resize and self.center_crop:
                raise ValueError(
                    f"`center_crop` has no effect on images that have the size. {steps}"
                )
            return
        if self.interpolation is None or not self.center_crop:
            raise ValueError(f"`resize_to` needs `interpolation` and `center_crop`. {steps}")
        least = self.image_height, self.image_width
        if not isinstance(self.resize_to, tuple):
            raise TypeError(f"`resize_to` must be a tuple of integers. {steps}")
        smallest = least if len(self.resize_to) == 2 else [max(least)]
        fits = len(self.resize_to) == len(smallest) and all(
            is_integer(size) and fewest <= size <= LARGEST_EDGE
            for size, fewest in zip(self.resize_to, smallest, strict=True)
        )
        if not fits:
            raise ValueError(
                "`resize_to` must be a height and a width, or the shorter edge, of at least "
                f"{least[0]} x {least[1]} and at most {LARGEST_EDGE} pixels. {steps}"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of an image."""
        return self.image_height, self.image_width, self.channels

    @property
    def grid(self) -> tuple[int, int]:
        """Number of rows and columns of patches."""
        return self.image_height // self.patch_size, self.image_width // self.patch_size


class PatchModelConfig(ModelConfig):
    """Base class of configurations of models that read an image as patches.

    Its head has a `pooling`, and says with `has_class_token` whether learned tokens precede the
    patches.
    """

    follow = frozenset({"max_length"})

    @property
    def leading_tokens(self) -> int:
        """Number of learned tokens before the patches."""
        return self.input.class_tokens if self.head.has_class_token else 0

    def with_data(self: Kind, **data: Any) -> Kind:  # noqa: D102
        # `max_length` follows from the size of these images instead of the default one.
        return super().with_data(**{"max_length": StackConfig().max_length, **data})

    def complete(self) -> None:  # noqa: D102
        rows, columns = self.input.grid
        length = max(1, rows * columns + self.leading_tokens)
        if self.encoder.max_length not in (StackConfig().max_length, length):
            raise ValueError(
                f"`max_length` follows from the number of patches, here {length}. "
                f"Received: max_length={self.encoder.max_length}."
            )
        encoder = dataclasses.replace(self.encoder, max_length=length)
        object.__setattr__(self, "encoder", encoder)

    def check(self) -> None:  # noqa: D102
        super().check()
        if isinstance(self.encoder.position, Binary):
            raise ValueError(
                "`position` must not be binary for patches, which have a row and a column. "
                f"Received: position={self.encoder.position}."
            )
