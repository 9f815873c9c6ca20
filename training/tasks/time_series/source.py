"""Time series from CSV files: inputs and a target at every step."""

import dataclasses
import datetime
import operator
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.time_series.file import read_series
from keras_transformer.tasks.time_series.steps import DAY, TimeStep, later
from keras_transformer.training.data.sources.base import SPLITS, Source

READING = ("separator", "decimal", "date_order", "step", "fill", "fill_limit")


class Series(Source):
    """Time series in memory, whose splits are periods.

    Args:
        path: The file, for errors.
        series: The `SeriesFile`.
        names: Names of the inputs; name of the target; and the names of precipitation and
            temperature among the inputs, or none: see `SnowAccount`.
        periods: Dictionary from a split to its first and last date, or date and time.
        window: Length of a window in steps. Up to `window - 1` steps before a split are added to
            it, without their targets.
        scored: Number of steps that count at the end of a window.
    """

    def __init__(self, path, series, names, periods, window, scored):
        self.splits = tuple(split for split in SPLITS if split in periods)
        self.description = f"the series in {path}"
        self._series, self._names = series, names
        self._window, self._scored = window, scored
        self._spans = {
            split: _span(path, series, split, *period) for split, period in periods.items()
        }

    def metadata(self) -> dict[str, Any]:
        """Returns names of inputs and target, sizes of a window and the format of the table."""
        inputs, target, snow = self._names
        return {
            "inputs": inputs,
            "target": target,
            "snow": snow,
            "max_length": self._window,
            "scored": self._scored,
            "table": dataclasses.asdict(self._series.table),
        }

    def rows(self, split) -> tf.data.Dataset:
        """Returns the steps of a split and those before it in a window: (inputs `[F]`, target)."""
        self.check_split(split)
        begin, end = self._spans[split]
        before = max(0, begin - self._window + 1)
        target = self._series.target[before:end].copy()
        target[: begin - before] = np.nan
        with tf.device("CPU:0"):
            return tf.data.Dataset.from_tensor_slices((self._series.inputs[before:end], target))

    def count(self, split) -> int:
        self.check_split(split)
        begin, end = self._spans[split]
        return end - begin


def open_series(settings) -> Series:
    """Reads the file that a `[data]` section names.

    Raises:
        ValueError: If it cannot be read, a line is wrong, it does not contain a period, or `snow`
            is set and steps are not days. One line, which names the file.
    """
    options = {name: getattr(settings, name) for name in READING}
    series = read_series(
        settings.file, settings.inputs, settings.target, settings.date_column, **options
    )
    if settings.snow and TimeStep.parse(series.table.step) != TimeStep(length=DAY):
        raise ValueError(
            f"`data.snow` computes degree days: the steps of {settings.file} must be 1 day. "
            f"Received: {series.table.step}."
        )
    periods = {split: tuple(ends) for split in SPLITS if (ends := getattr(settings, split))}
    names = tuple(settings.inputs), settings.target, tuple(settings.snow)
    return Series(settings.file, series, names, periods, settings.window, settings.scored)


def _span(path, series, split, begin, end):
    """Returns the indices of the first step of a period and of the step after its last."""
    moments, next_step = series.moments, TimeStep.parse(series.table.step).after(series.moments[-1])
    from_clock, to_clock = (_clock(path, split, value, moments[0]) for value in (begin, end))
    (first, first_end), (last, last_end) = _bounds(begin), _bounds(end)
    inside = [
        place
        for place, moment in enumerate(moments)
        if first <= from_clock(moment) and to_clock(moment) < last_end
    ]
    too_early = first_end <= from_clock(moments[0])
    too_late = last > to_clock(moments[-1]) and last_end > to_clock(next_step)
    if not inside or too_early or too_late:
        raise ValueError(
            f"`data.{split}` must be a period in {path}, which covers {moments[0]} to "
            f"{moments[-1]}. Received: {begin} to {end}."
        )
    return inside[0], inside[-1] + 1


def _bounds(value):
    """Returns the first moment of a date, or of a date and time, and the moment after it ends."""
    if not isinstance(value, datetime.datetime):
        day = datetime.datetime.combine(value, datetime.time())
        return day, later(day, DAY)
    if value.tzinfo is not None:
        offset, value = value.utcoffset(), value.replace(tzinfo=None)
        value = later(value, -offset)
    return value, later(value, datetime.timedelta.resolution)


def _clock(path, split, value, moment):
    """Returns a function from a `Moment` to the time to compare with a date of a period.

    It is the time in UTC if `value` has an offset, otherwise local time.
    """
    if getattr(value, "tzinfo", None) is None:
        return operator.attrgetter("local")
    if moment.offset is None:
        raise ValueError(
            f"`data.{split}` must not have an offset from UTC: the dates of {path} have none. "
            f"Received: {value}."
        )
    return operator.attrgetter("instant")
