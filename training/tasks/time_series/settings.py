"""Kinds of `[data]` for arrays: images and time series."""

import datetime
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from keras_transformer.tasks.image_classification.config import Interpolation, PatchInput
from keras_transformer.tasks.time_series.steps import TimeStep
from keras_transformer.tasks.time_series.table_format import DECIMALS, FILLS, ORDERS, SEPARATORS
from keras_transformer.training.settings.fields import DataSettings, PathText, Positive


def _check_date(value):
    if not isinstance(value, datetime.date):  # a datetime is a date as well
        raise ValueError("must be a date without quotes, such as 2005-08-31, perhaps with a time")
    return value


Period = Annotated[
    list[Annotated[datetime.datetime | datetime.date, BeforeValidator(_check_date)]],
    Field(min_length=2, max_length=2),
    WithJsonSchema({"type": "list of: date, or date and time"}),
]


class ArrayData(DataSettings):
    """Base of the kinds of `[data]` for arrays."""

    batch_size: Positive = Field(64, description="Number of examples in a batch.")

    @property
    def size_of_batch(self) -> int:
        """Size of a batch, in examples."""
        return self.batch_size


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
        description="Height and width to which images are resized before they are cropped to the "
        "`image_size` pixels at their centre, or only the length of the shorter edge. If omitted: "
        "`image_size`.",
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


class SeriesData(ArrayData):
    """A time series in a CSV file with a header and a line for each step, minutes to years apart.

    Each split is a period of the series; steps whose target is unknown do not count. Before a
    split, only inputs are read, as far back as a window reaches. Other columns are ignored.
    """

    columns: ClassVar = ("inputs", "target")

    source: Literal["series"] = Field(description="The kind of data.")
    file: PathText = Field(description="The CSV file.")
    date_column: str = Field(
        "date",
        description="Name of the column of dates, such as 2005-08-31, 2005-08-31T14:00+01:00, "
        "31.08.2005, 31/08/2005 or 08/31/2005. Times with an offset from UTC are compared as "
        "instants.",
    )
    date_order: Literal[ORDERS] | None = Field(
        None,
        description="Order of day and month in dates such as 03/04/2005. If omitted: the order "
        "that fits all lines of the file.",
    )
    separator: Literal[tuple(SEPARATORS)] | None = Field(
        None, description="Column separator. If omitted: the separator in the header."
    )
    decimal: Literal[tuple(DECIMALS)] | None = Field(
        None,
        description="Decimal sign. If omitted: the sign that fits all numbers of the file. Numbers "
        "must not have a thousands separator.",
    )
    step: str | None = Field(
        None,
        description='Time between two lines, such as "15 minutes", "1 hour", "1 day" or '
        '"1 month". If omitted: the most common difference in the file; others are gaps.',
    )
    fill: Literal[FILLS] | None = Field(
        None,
        description="How to fill gaps (missing lines and empty cells of inputs): with the last "
        "value, or by linear interpolation. If omitted: gaps are an error.",
    )
    fill_limit: Positive = Field(
        3, description="Longest gap that `fill` fills, in steps; a longer gap is an error."
    )
    inputs: list[str] = Field(min_length=1, description="Names of the columns of inputs.")
    target: str = Field(
        description="Name of the column to predict; a cell is empty where the target is unknown."
    )
    snow: list[str] = Field(
        [],
        description="Names of two inputs, daily precipitation in mm and temperature in degrees "
        "Celsius. The model replaces them by liquid water (rain and melt) and the snow on the "
        "ground, computed by degree days; steps must be days. If omitted or empty: inputs are "
        "used unchanged.",
    )
    train: Period = Field(
        description="First and last step for training: dates, or dates with times. A last date "
        "includes its whole day."
    )
    validation: Period = Field(description="First and last step for validation.")
    test: Period | None = Field(None, description="First and last step for the test; optional.")
    window: int = Field(
        365, ge=2, description="Length of a window in steps: how far back inputs are read."
    )
    scored: Positive = Field(
        1,
        description="Number of steps at the end of a window whose outputs are used; the steps "
        "before them warm the model up. More of them mean fewer windows and less computation.",
    )
    stride: Positive = Field(
        1,
        description="Steps between the beginnings of two training windows; at most `scored`.",
    )

    @model_validator(mode="after")
    def _windows_fit(self):
        if not self.stride <= self.scored <= self.window:
            raise ValueError(
                "`stride` must be at most `scored`, and `scored` at most `window`, or some steps "
                f"would not count. Received: stride={self.stride}, scored={self.scored}, "
                f"window={self.window}."
            )
        if self.target in self.inputs or len(set(self.inputs)) < len(self.inputs):
            raise ValueError(
                "`inputs` must name different columns, other than `target`. Received: "
                f"{', '.join(self.inputs)}."
            )
        if self.date_column in (*self.inputs, self.target):
            raise ValueError(
                "`date_column` must not be one of `inputs` or the `target`. Received: "
                f"{self.date_column}."
            )
        if self.step is not None:
            TimeStep.parse(self.step)
        if self.snow and (len(self.snow) != 2 or len({*self.snow} & {*self.inputs}) != 2):
            raise ValueError(
                "`snow` must name two of `inputs`, precipitation and temperature. Received: "
                f"{', '.join(self.snow)}."
            )
        return self
