"""The kinds of `[data]` other than text."""

import datetime
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from keras_transformer.config.table_format import DECIMALS, FILLS, ORDERS, SEPARATORS
from keras_transformer.tasks.series.steps import TimeStep
from keras_transformer.training.settings.fields import DataSettings, PathText, Positive


def _check_date(value):
    if not isinstance(value, datetime.date):  # of which datetimes are a kind
        raise ValueError("must be a date without quotes, such as 2005-08-31, which may have a time")
    return value


Period = Annotated[
    list[Annotated[datetime.datetime | datetime.date, BeforeValidator(_check_date)]],
    Field(min_length=2, max_length=2),
    WithJsonSchema({"type": "list of: date, or date and time"}),
]


class ArrayData(DataSettings):
    """What the kinds of `[data]` that are arrays have in common."""

    batch_size: Positive = Field(64, description="Examples of a batch.")

    @property
    def size_of_batch(self):
        """How much a batch holds."""
        return self.batch_size


class ImageData(ArrayData):
    """PNG and JPEG files, for each split a folder that holds a folder of each label.

    Paths are relative to the configuration file; `~` and `${VARIABLES}` are replaced.
    """

    columns: ClassVar = ("image", "label")

    source: Literal["images"] = Field(description="The kind of data.")
    train: PathText = Field(
        description="Folder with a folder of images for each label, which has its name."
    )
    validation: PathText = Field(description="Such a folder, to validate with.")
    test: PathText | None = Field(
        None, description="Such a folder for `evaluate`; may be left out."
    )
    image_size: list[Positive] | None = Field(
        None,
        min_length=2,
        max_length=2,
        description="Height and width that all images are resized to. Left out: all must have the "
        "size of the first.",
    )
    channels: Literal[1, 3] = Field(3, description="1 makes all images grey, 3 coloured.")
    shift: int = Field(
        0,
        ge=0,
        description="In training every image is moved at random by up to so many pixels, down or "
        "up and right or left; the pixels at the edge are repeated.",
    )

    @model_validator(mode="after")
    def _splits_differ(self):
        given = [path for path in (self.train, self.validation, self.test) if path is not None]
        if len(set(given)) < len(given):
            raise ValueError("`train`, `validation` and `test` must be different folders.")
        return self


class DigitsData(ArrayData):
    """Handwritten digits of 8 x 8 pixels, 1,797 of them, which come with scikit-learn."""

    columns: ClassVar = ("image", "label")

    source: Literal["digits"] = Field(description="The kind of data.")
    seed: int = Field(
        1,
        ge=0,
        description="Decides which fifth is the test split and which tenth validates; each has the "
        "same share of every digit.",
    )
    shift: int = Field(0, ge=0, description="As of images.")


class SeriesData(ArrayData):
    """A time series in a CSV file: a header, and a line for every step, minutes to years apart.

    Every split is a period of it, in which the target counts where it is known. Of the steps before
    a split only the inputs are read, as far back as a window reaches. Other columns are not read.
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
        description="Which number comes first in dates such as 03/04/2005. Left out: as all lines "
        "of the file show.",
    )
    separator: Literal[tuple(SEPARATORS)] | None = Field(
        None, description="Sign between two columns. Left out: the one that the header has."
    )
    decimal: Literal[tuple(DECIMALS)] | None = Field(
        None,
        description="Decimal sign. Left out: as all numbers of the file show. There must be "
        "nothing between thousands.",
    )
    step: str | None = Field(
        None,
        description='Time from one line to the next, such as "15 minutes", "1 hour", "1 day" or '
        '"1 month". Left out: the most common one in the file. The others are gaps.',
    )
    fill: Literal[FILLS] | None = Field(
        None,
        description="How gaps are filled, lines that are missing and cells of inputs that are "
        "empty: with the last value, or linearly between those before and after. Left out: gaps "
        "are refused.",
    )
    fill_limit: Positive = Field(
        3, description="Most steps of a gap that `fill` fills; a longer gap is refused."
    )
    inputs: list[str] = Field(
        min_length=1, description="Names of the columns that the target follows from."
    )
    target: str = Field(
        description="Name of the column to learn; a cell is empty where it is not known."
    )
    snow: list[str] = Field(
        [],
        description="Of the inputs the columns of daily precipitation in mm and of temperature in "
        "degrees Celsius: the model puts in their place what rains or melts and what lies as snow, "
        "by degree days, so that steps must be days. Left out or empty: they stay as they are.",
    )
    train: Period = Field(
        description="First and last step of the training: dates, or dates with times. A last date "
        "includes all of its day."
    )
    validation: Period = Field(description="First and last step of the validation.")
    test: Period | None = Field(
        None, description="First and last step for `evaluate`; may be left out."
    )
    window: int = Field(
        365, ge=2, description="Steps of a window: so far back a step's inputs are read."
    )
    scored: Positive = Field(
        1,
        description="Steps at the end of a window whose outputs are used; those before them warm "
        "the model up. With more the windows are fewer, and less is computed.",
    )
    stride: Positive = Field(
        1, description="Steps from one window of the training to the next; at most `scored`."
    )

    @model_validator(mode="after")
    def _windows_fit(self):
        if not self.stride <= self.scored <= self.window:
            raise ValueError(
                "`stride` must be at most `scored`, and `scored` at most `window`, or steps would "
                f"be left out. Received: stride={self.stride}, scored={self.scored}, "
                f"window={self.window}."
            )
        if self.target in self.inputs or len(set(self.inputs)) < len(self.inputs):
            raise ValueError(
                "`inputs` must name different columns, and not `target`. Received: "
                f"{', '.join(self.inputs)}."
            )
        if self.date_column in (*self.inputs, self.target):
            raise ValueError(
                "`date_column` must be neither one of `inputs` nor `target`. Received: "
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
