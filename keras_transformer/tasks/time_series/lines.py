"""Answers to the lines of a CSV file, which are consecutive steps of a series."""

import dataclasses
import math

import numpy as np

from keras_transformer.tasks.time_series.reader import SeriesReader
from keras_transformer.tasks.time_series.table import find_columns, is_header, read_number, split


@dataclasses.dataclass(frozen=True)
class LineAnswer:
    """The answer to a line, which has no score.

    Args:
        text: The number; for a header, the name of the target.
        truncated: Always `False`: nothing is truncated.
    """

    text: str
    truncated: bool = False


class SeriesLines:
    """Answers the lines of one series in order, with memory of the past.

    `SeriesReader` describes the lines. Filled steps have no answer.

    Args:
        series: A `Windowed`.
        inputs: Names of the inputs.
        target: Name of the target.
        table: A `TableFormat`.
        warn: Function that is called with a line of text for each gap that is filled. `None`: no
            warnings.

    Call arguments:
        numbers: Numbers of the lines, counted from 1.
        texts: The lines.
        batch_size: Not used, because a series is one example.

    Returns:
        For each line, a list of one `LineAnswer`.

    Raises:
        ValueError: If a line has too few columns, a cell is not a number, or the line is not the
            next step. The error is one line that names the line.

    Attributes:
        blank: `False`: an empty line is an error and has no empty answer.
        strict: `True`: a bad line is an error, because all later answers would belong to other
            steps. Bytes that are not UTF-8 are lone surrogates, which are allowed in columns that
            are not read.
    """

    blank = False
    strict = True

    def __init__(self, series, inputs, target, table=None, warn=None):
        self._series, self._target, self._warn = series, target, warn
        self._reader = SeriesReader(inputs, table)

    @property
    def filled(self) -> int:
        """Number of filled steps."""
        return self._reader.filled

    def __call__(self, numbers, texts, batch_size=None, progress=None) -> list[list[LineAnswer]]:
        answers, rows, places = [], [], []
        for number, text in zip(numbers, texts, strict=True):
            if number == 1 and self._reader.read_header(text):
                answers.append([LineAnswer(self._target)])
                continue
            rows += self._read(text, f"line {number}")
            places.append(len(rows) - 1)
        outputs = self._series.extend(np.array(rows).reshape(-1, self._series.num_inputs))
        return answers + [[LineAnswer(f"{outputs[place]:.6g}")] for place in places]

    def _read(self, text, where):
        before = self.filled
        steps = list(self._reader.read(text, where))
        if self._warn is not None and self.filled > before:
            count = self.filled - before
            self._warn(f"{where}: filled {count} step{'s' * (count > 1)} up to this line")
        return steps


def read_targets(lines, target, table) -> list[float]:
    """Returns the observed targets in lines of a CSV file; NaN if unknown.

    The first line may be a header. The target is then the column with its name, or the only column.
    Without a header, every line contains only the target.

    Args:
        lines: List of strings.
        target: Name of the target.
        table: A `TableFormat`.

    Returns:
        A number for each line, NaN for a header.

    Raises:
        ValueError: If a target is not a number; the error names the line.
    """
    values, columns = [], None
    for number, line in enumerate(lines, start=1):
        where = f"reference, line {number}"
        if number == 1 and is_header(line, [target], table.decimal):
            columns = find_columns(line, [target], where, likely=table.separator)
            values.append(math.nan)
            continue
        cells = columns.cells(line, where) if columns else split(line, table.separator, where)
        values.append(_target(number, cells, target, where, table.decimal))
    return values


def _target(number, cells, name, where, decimal):
    if len(cells) != 1:
        raise ValueError(
            f"{where}: must contain only {name}, or line 1 must be a header with this column. "
            f"Received: {len(cells)} columns."
        )
    try:
        return read_number(cells[0], name, where, decimal, may_be_empty=True)
    except ValueError:
        if number == 1:  # a header of one column, with another name
            return math.nan
        raise
