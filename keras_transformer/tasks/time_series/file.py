"""Reading of a whole CSV file of a series; its format is derived from all lines if not given."""

import dataclasses
import itertools
import pathlib
import re

import numpy as np

from keras_transformer.tasks.time_series.dates import needs_order, parse_date, read_date
from keras_transformer.tasks.time_series.gaps import fill_gaps, steps_since
from keras_transformer.tasks.time_series.steps import TimeStep, find_step
from keras_transformer.tasks.time_series.table import find_columns, find_decimal, read_number
from keras_transformer.tasks.time_series.table_format import ORDERS, TableFormat
from keras_transformer.text.lines import read_lines

_TIME_OF_DAY = re.compile("[T ].*")


@dataclasses.dataclass(frozen=True)
class SeriesFile:
    """The steps of a series in a file.

    Args:
        moments: `Moment`s of the steps, `[N]`.
        inputs: `[N, F]`, float32.
        target: `[N]`, float32, NaN if unknown.
        table: The `TableFormat` of the file.
    """

    moments: tuple
    inputs: np.ndarray
    target: np.ndarray
    table: TableFormat


def read_series(
    path,
    inputs,
    target,
    date_column,
    *,
    separator=None,
    decimal=None,
    date_order=None,
    step=None,
    fill=None,
    fill_limit=1,
) -> SeriesFile:
    """Reads a series from a file.

    Args:
        path: The file, with a header and a line for each step.
        inputs: Names of the columns of the inputs.
        target: Name of the column of the target, whose cells may be empty.
        date_column: Name of the column of the dates.
        separator, decimal, date_order, step: See `TableFormat`. `None`: derived from all lines.
        fill, fill_limit: See `TableFormat`.

    Returns:
        A `SeriesFile`. The target of steps that were filled is unknown.

    Raises:
        ValueError: If the file cannot be read, a line is not valid, or the format is ambiguous. The
            error is one line that names the file and, if possible, the line.
    """
    path = pathlib.Path(path)
    columns, rows = _read_rows(path, (date_column, *inputs, target), separator)
    dates = [row[0] for row in rows]
    if decimal is None:
        numbers = ((line, cell) for line, row in enumerate(rows, start=2) for cell in row[1:])
        decimal = find_decimal(numbers, columns.separator, path)
    values = _values(path, columns.names, rows, decimal, fill)  # [lines, F + 1]
    if date_order is None:
        date_order = _find_order(path, dates, fill)
    numbered = enumerate(dates, start=2)
    moments = [read_date(date, f"{path}, line {line}", date_order) for line, date in numbered]
    step = find_step(moments) if step is None else TimeStep.parse(step)
    counts = [
        steps_since(*pair, step, f"{path}, line {line}", fill, fill_limit)
        for line, pair in enumerate(itertools.pairwise(moments), start=3)
    ]
    places = np.cumsum([0, *counts])  # number of the step of each line
    steps = np.full((places[-1] + 1, values.shape[1]), np.nan)  # [N, F + 1]
    steps[places] = values
    filled = int((~np.isfinite(steps[:, :-1])).any(axis=1).sum())
    if fill is not None:
        steps[:, :-1] = fill_gaps(steps[:, :-1], fill, fill_limit)
        _check_filled(path, steps[places, :-1], inputs, fill, fill_limit)
    steps = steps.astype(np.float32)
    table = TableFormat(
        separator=columns.separator,
        decimal=decimal,
        date_column=date_column,
        date_order=date_order,
        step=str(step),
        fill=fill,
        fill_limit=fill_limit,
        filled=filled,
    )
    return SeriesFile(_all_moments(moments, counts, step), steps[:, :-1], steps[:, -1], table)


def _read_rows(path, names, separator):
    """Returns the `Columns` of a file, and the cells of these columns in each line."""
    try:
        lines = read_lines(path, "surrogateescape")
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}.") from None
    columns = find_columns(lines[0] if lines else "", names, f"{path}, line 1", separator)
    rows = [
        columns.cells(text, f"{path}, line {line}") for line, text in enumerate(lines[1:], start=2)
    ]
    if not rows:
        raise ValueError(f"{path}: must have a line for each step. Received: none.")
    return columns, rows


def _values(path, names, rows, decimal, fill):
    """Returns the numbers in lines, `[lines, F + 1]`, the target last; NaN for an empty cell."""
    may_be_empty = [False, *(fill is not None for _ in names[1:-1]), True]
    return np.array(
        [
            [
                read_number(cell, name, f"{path}, line {line}", decimal, empty)
                for cell, name, empty in zip(row[1:], names[1:], may_be_empty[1:], strict=True)
            ]
            for line, row in enumerate(rows, start=2)
        ]
    )


def _find_order(path, dates, fill):
    """Returns the order of day and month in dates; `None` if no date depends on it."""
    line = next((line for line, date in enumerate(dates, start=2) if needs_order(date)), None)
    if line is None:
        return None
    days = list(dict.fromkeys(_TIME_OF_DAY.sub("", date) for date in dates))
    places = {order: _first_wrong(days, order) for order in ORDERS}
    if places["day_first"] != places["month_first"]:
        return max(ORDERS, key=places.__getitem__)
    series = {order: [parse_date(date, order) for date in dates] for order in ORDERS}
    regular = [
        order for order in ORDERS if None in series[order] or _is_regular(series[order], fill)
    ]
    if len(regular) == 2 and places["day_first"] == len(days):
        day = _TIME_OF_DAY.sub("", dates[line - 2])
        readings = " or ".join(str(parse_date(day, order)) for order in ORDERS)
        raise ValueError(
            f"{path}, line {line}: {day!r} is {readings}, and no line shows which. "
            'Set `data.date_order` to "day_first" or "month_first".'
        )
    return regular[0] if regular else ORDERS[0]


def _first_wrong(days, order):
    """Returns the index of the first date that is invalid in the given order of day and month.

    If all dates are valid, returns the number of dates.
    """
    wrong = (place for place, day in enumerate(days) if parse_date(day, order) is None)
    return next(wrong, len(days))


def _is_regular(moments, fill):
    """Returns whether each line is one step after the previous line, or more with a `fill`."""
    step = find_step(moments)
    counts = {step.between(*pair) for pair in itertools.pairwise(moments)}
    return all(count is not None and (count == 1 or fill and count > 1) for count in counts)


def _check_filled(path, lines, names, fill, limit):
    """Refuses lines `[lines, F]` with an input that is still unknown.

    Steps between two lines need no check: if they are unknown, so is a line, because gaps between
    lines are not longer than the limit.
    """
    for line, row in enumerate(lines, start=2):
        for name, value in zip(names, row, strict=True):
            if not np.isfinite(value):
                beside = "before and after" if fill == "linear" else "before"
                raise ValueError(
                    f"{path}, line {line}: {name} is empty and cannot be filled: there must be a "
                    f"value {beside}, and at most {limit} steps without one (`data.fill_limit`)."
                )


def _all_moments(moments, counts, step):
    """Returns the moments of all steps, including those between two lines."""
    steps = [moments[0]]
    for moment, count in zip(moments[1:], counts, strict=True):
        for _ in range(count - 1):
            steps.append(step.after(steps[-1]))
        steps.append(moment)
    return tuple(steps)
