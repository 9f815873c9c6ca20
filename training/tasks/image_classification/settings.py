"""Kinds of `[data]` for image classification."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from keras_transformer.config.patches import Interpolation, PatchInput
from keras_transformer.training.data.sources.base import Source
from keras_transformer.training.settings.data_sections import ArrayData
from keras_transformer.training.settings.fields import PathText, Positive


class ImageData(ArrayData):
    """PNG and JPEG files: for each split a folder, with a folder of images for each label.

    Paths are relative to the configuration file; `~` and `${VARIABLES}` are replaced.
    """

    columns: ClassVar = ("image", "label")

    source: Literal["images"] = Field(description="The kind of data.")
    train: PathText = Field(
        description="Training images: a folder that contains, for each label, a folder of images "
        "whose name is the label."
    )
    validation: PathText = Field(description="Validation images, in a folder like `train`.")
    test: PathText | None = Field(
        None, description="Test images for `evaluate`, in a folder like `train`; optional."
    )
    image_size: list[Positive] | None = Field(
        None,
        min_length=2,
        max_length=2,
        description="Height and width to which all images are resized. If omitted: all images must "
        "have the size of the first one.",
    )
    interpolation: Interpolation | None = Field(
        None,
        description="Filter with which images are resized, with the pixels of Pillow. If omitted: "
        "bilinear, with the pixels of TensorFlow.",
    )
    resize_to: list[Positive] | None = Field(
        None,
        min_length=1,
        max_length=2,
        description="Size to which images are resized: height and width, or only the length of "
        "the shorter edge. Then they are cropped to the `image_size` pixels at their centre. "
        "If omitted: `image_size`.",
    )
    channels: Literal[1, 3] = Field(
        3, description="Number of channels: 1 converts all images to grey, 3 to RGB."
    )
    shift: int = Field(
        0,
        ge=0,
        description="Largest random shift of a training image in pixels, vertically and "
        "horizontally; the pixels at the edge are repeated.",
    )

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.tasks.image_classification.source import open_images

        return open_images(self)

    @model_validator(mode="after")
    def _splits_differ(self):
        given = [path for path in (self.train, self.validation, self.test) if path is not None]
        if len(set(given)) < len(given):
            raise ValueError("`train`, `validation` and `test` must be different folders.")
        return self

    @model_validator(mode="after")
    def _steps_fit(self):
        if self.image_size is None and (self.interpolation or self.resize_to):
            name = "interpolation" if self.interpolation else "resize_to"
            raise ValueError(f"`{name}` has no effect without `image_size`.")
        if self.resize_to and self.image_size is not None:
            height, width = self.image_size
            PatchInput(
                image_height=height,
                image_width=width,
                resize=True,
                interpolation=self.interpolation,
                resize_to=tuple(self.resize_to),
                center_crop=True,
            )
        return self


class DigitsData(ArrayData):
    """The 1,797 handwritten digits of 8 x 8 pixels that come with scikit-learn."""

    columns: ClassVar = ("image", "label")

    source: Literal["digits"] = Field(description="The kind of data.")
    seed: int = Field(
        1,
        ge=0,
        description="Random seed of the splits: a fifth of the images is the test split and a "
        "tenth the validation split, each with the same share of every digit.",
    )
    shift: int = Field(
        0,
        ge=0,
        description="Largest random shift of a training image in pixels, vertically and "
        "horizontally; the pixels at the edge are repeated.",
    )

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.tasks.image_classification.source import open_digits

        return open_digits(self)
