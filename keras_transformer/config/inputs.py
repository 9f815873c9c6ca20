"""Configurations of inputs: tokens, image patches, or steps of a time series."""

import dataclasses
import typing
from typing import Annotated, Any, Literal

from keras_transformer.arguments import documented, option
from keras_transformer.checks import check_choice, check_positive, is_integer
from keras_transformer.config.block import Count, OptionalCount
from keras_transformer.config.part_config import PartConfig
from keras_transformer.config.vocabulary import VocabularyOptions
from keras_transformer.tasks.time_series.table_format import TableFormat

LARGEST_EDGE = 65_535  # of a JPEG file
Interpolation = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]


def check_interpolation(name: str, value: Any) -> None:
    """Requires an `Interpolation`, or `None`."""
    if value is not None:
        check_choice(name, value, typing.get_args(Interpolation))


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenInput(VocabularyOptions):
    """Configuration of token ids and their embedding; in an encoder-decoder, of the source.

    Args:
        **options: See `help(TokenInput)`.
    """

    segments: Literal["none", "from_bos", "after_eos"] = option(
        "none",
        """Segment embeddings: one learned vector is added to the tokens of the first text and
        another one to the tokens of the second (Devlin et al., 2019). The second text begins at the
        first `bos_id`, `"from_bos"`, or after the first `eos_id`, `"after_eos"`. `"none"`: no
        segment embeddings.""",
    )

    embedding_size: OptionalCount = option(
        None,
        """Width of the embeddings, which are normalised and projected to `d_model`, as in ELECTRA
        and ALBERT. `None`: `d_model`, without a projection.""",
    )

    def check_with(self, config: Any) -> None:  # noqa: D102
        super().check_with(config)
        if self.embedding_size is not None and config.stacks[0].embedding_norm:
            raise ValueError(
                "`embedding_norm` must be false with `embedding_size`, which has a norm of its "
                "own before the projection."
            )


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
        """Number of learned tokens before the patches, for `pooling="class"`. 2: a class token and
        another one, the distillation token of DeiT.""",
    )

    def __post_init__(self) -> None:
        if isinstance(self.resize_to, list):  # as in JSON
            object.__setattr__(self, "resize_to", tuple(self.resize_to))
        super().__post_init__()
        self._check_steps()

    def check_with(self, config: Any) -> None:  # noqa: D102
        if self.class_tokens > 1 and not config.head.has_class_token:
            raise ValueError(
                '`class_tokens` has no effect without `pooling="class"`. Received: '
                f"class_tokens={self.class_tokens}, pooling={config.head.pooling!r}."
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


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class SeriesInput(PartConfig):
    """Configuration of the inputs at every step of a time series.

    Args:
        **options: See `help(SeriesInput)`.
    """

    inputs: tuple = option(("input",), "Names of the inputs.", set_by="data")
    input_mean: tuple = option(
        (0.0,),
        "Training mean of each input, subtracted from it.",
        set_by="data",
        statistic=True,
    )
    input_scale: tuple = option(
        (1.0,),
        "Training standard deviation of each input, by which it is divided.",
        set_by="data",
        statistic=True,
    )
    snow: tuple = option(
        (),
        """Names of two of the inputs, precipitation and temperature, which a `SnowAccount`
        replaces by water and snow; their `input_mean` and `input_scale` then describe water and
        snow. Empty: no snow account.""",
        set_by="data",
    )
    table: TableFormat = option(
        TableFormat(),
        """Format of the lines of a CSV file and the time between them: a `TableFormat`, or its
        fields as a dictionary. It does not affect the model.""",
        set_by="data",
        statistic=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("inputs", "input_mean", "input_scale", "snow"):
            object.__setattr__(self, name, tuple(getattr(self, name)))  # tuples are lists in JSON
        if isinstance(self.table, dict):
            object.__setattr__(self, "table", TableFormat(**self.table))
        if not len(self.inputs) == len(self.input_mean) == len(self.input_scale):
            raise ValueError(
                "`inputs`, `input_mean` and `input_scale` must have the same length. Received: "
                f"{len(self.inputs)}, {len(self.input_mean)} and {len(self.input_scale)}."
            )
        if self.snow and (len(self.snow) != 2 or len({*self.snow} & {*self.inputs}) != 2):
            raise ValueError(
                "`snow` must name two of the inputs, precipitation and temperature. Received: "
                f"{', '.join(map(str, self.snow))}."
            )
        for scale in self.input_scale:
            check_positive("input_scale", scale)

    @property
    def num_inputs(self) -> int:
        """Number of inputs F."""
        return len(self.inputs)
