"""The kind of `[data]` for time series."""

import datetime
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from keras_transformer.tasks.time_series.steps import TimeStep
from keras_transformer.tasks.time_series.table_format import DECIMALS, FILLS, ORDERS, SEPARATORS
from keras_transformer.training.data.sources.base import Source
from keras_transformer.training.settings.data_sections import ArrayData
from keras_transformer.training.settings.fields import PathText, Positive


def _check_date(value):
    if not isinstance(value, datetime.date):  # a datetime is a date as well
        raise ValueError("must be a date without quotes, such as 2005-08-31, perhaps with a time")
    return value


Period = Annotated[
    list[Annotated[datetime.datetime | datetime.date, BeforeValidator(_check_date)]],
    Field(min_length=2, max_length=2),
    WithJsonSchema({"type": "list of: date, or date and time"}),
]


class SeriesData(ArrayData):
    """A time series in a CSV file with a header and a line for each step, minutes to years apart.

    Each split is a period of the series. Steps whose target is unknown do not count. From the time
    before a split, only inputs are read, as far back as a window reaches. Other columns are
    ignored.
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
        '"1 month". If omitted: the most common difference in the file. Longer ones are gaps.',
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
        description="Number of steps at the end of a window whose outputs are used. The steps "
        "before them warm the model up. A larger number means fewer windows and less "
        "computation.",
    )
    stride: Positive = Field(
        1,
        description="Steps between the beginnings of two training windows; at most `scored`.",
    )

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.tasks.time_series.source import open_series

        return open_series(self)

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
