"""A time series from a CSV file: inputs and a target at every step, one day each."""

import csv
import datetime
import math
import pathlib

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.sources.base import SPLITS, Source

DAY = datetime.timedelta(days=1)


class Series(Source):
    """A series in memory, of which every split is a period.

    Args:
        path: The file, for errors.
        first: Date of the first step.
        inputs: `[N, F]`, float32.
        target: `[N]`, float32, not a number where it is not known.
        names: Names of the inputs, name of the target, and of the inputs those of precipitation and
            temperature or none: see `SnowAccount`.
        periods: Dictionary from a split to its first and its last day.
        window: Steps in a window: as many steps but one come before each split, if there are any,
            with a target that is not known.
        scored: Steps at the end of a window that count.
    """

    def __init__(self, path, first, inputs, target, names, periods, window, scored):
        self.splits = tuple(split for split in SPLITS if split in periods)
        self.description = f"the series in {path}"
        self._inputs, self._target, self._names = inputs, target, names
        self._window, self._scored = window, scored
        self._spans = {}
        for split, (begin, end) in periods.items():
            last = first + (len(inputs) - 1) * DAY
            if not first <= begin <= end <= last:
                raise ValueError(
                    f"`data.{split}` must be a period of {path}, which has {first} to {last}. "
                    f"Received: {begin} to {end}."
                )
            self._spans[split] = (begin - first).days, (end - first).days + 1

    def facts(self):
        """Returns the names of inputs and target, and the sizes of a window."""
        inputs, target, snow = self._names
        return {
            "inputs": inputs,
            "target": target,
            "snow": snow,
            "max_length": self._window,
            "scored": self._scored,
        }

    def rows(self, split):
        """Returns the steps of a split and of the window before it: (inputs `[F]`, target)."""
        self.check_split(split)
        begin, end = self._spans[split]
        before = max(0, begin - self._window + 1)
        target = self._target[before:end].copy()
        target[: begin - before] = np.nan
        with tf.device("CPU:0"):
            return tf.data.Dataset.from_tensor_slices((self._inputs[before:end], target))

    def count(self, split):
        self.check_split(split)
        begin, end = self._spans[split]
        return end - begin


def open_series(settings):
    """Reads the file that a `[data]` section names.

    Raises:
        ValueError: If it cannot be read, lacks a column, or has a line with a gap or a date out of
            order or something other than a number. One line that names file and line.
    """
    path = pathlib.Path(settings.file)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            first, inputs, target = _read(path, csv.reader(file), settings)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: must be UTF-8: byte {error.start} cannot be read.") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}.") from None
    except csv.Error as error:
        raise ValueError(f"{path}: is no CSV file: {error}.") from None
    periods = {split: tuple(days) for split in SPLITS if (days := getattr(settings, split))}
    names = tuple(settings.inputs), settings.target, tuple(settings.snow)
    return Series(path, first, inputs, target, names, periods, settings.window, settings.scored)


def _read(path, rows, settings):
    """The first date, and the inputs and the target of all lines."""
    header = [name.strip() for name in next(rows, [])]
    wanted = [settings.date_column, *settings.inputs, settings.target]
    missing = [name for name in wanted if name not in header]
    if missing:
        raise ValueError(
            f"{path}, line 1: must have the columns {', '.join(wanted)}. Missing: "
            f"{', '.join(missing)}."
        )
    places = [header.index(name) for name in wanted]
    dates, values = [], []
    for cells in rows:
        where = f"{path}, line {rows.line_num}"
        if len(cells) != len(header):
            raise ValueError(f"{where}: must have {len(header)} columns. Received: {len(cells)}.")
        date, *numbers = (cells[place].strip() for place in places)
        dates.append(_date(where, date, dates[-1] if dates else None))
        values.append([_number(where, *pair) for pair in zip(wanted[1:-1], numbers, strict=False)])
        values[-1].append(_number(where, wanted[-1], numbers[-1], may_be_empty=True))
    if not dates:
        raise ValueError(f"{path}: must have a line for each day. Received: none.")
    table = np.array(values, np.float32)
    return dates[0], table[:, :-1], table[:, -1]


def _date(where, text, before):
    """A date, which is the day after the one before."""
    try:
        date = datetime.date.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{where}: the date must be such as 2005-08-31. Received: {text!r}."
        ) from None
    if before is not None and date != before + DAY:
        raise ValueError(
            f"{where}: every line must be the day after the one before it, here {before + DAY}. "
            f"Received: {date}."
        )
    return date


def _number(where, name, text, may_be_empty=False):
    if may_be_empty and not text:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        rule = "a number or empty" if may_be_empty else "a number"
        raise ValueError(f"{where}: {name} must be {rule}. Received: {text!r}.")
    return value
