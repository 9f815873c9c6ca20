"""Lines of a CSV file as the steps of a series, one after the other."""

import dataclasses
import math

import numpy as np

from keras_transformer.tasks.series.reader import SeriesReader
from keras_transformer.tasks.series.table import find_columns, is_header, read_number, split


@dataclasses.dataclass(frozen=True)
class LineAnswer:
    """The answer to a line; a number has no score.

    Args:
        text: The number, or for a header the name of the target.
        truncated: Always `False`: nothing is cut.
    """

    text: str
    truncated: bool = False


class SeriesLines:
    """Answers lines in their order: each is a step of one series, whose past it knows.

    What lines may be is in `SeriesReader`. Steps that are filled have no answer.

    Args:
        series: A `Windowed`.
        inputs: Names of the inputs.
        target: Name of the target.
        table: A `TableFormat`.
        warn: Called with one line of text for each gap that is filled. `None`: nothing is.

    Call arguments:
        numbers: Numbers of the lines, counted from 1.
        texts: The lines.
        batch_size: Not used: a series is one example.

    Returns:
        For each line a list of one `LineAnswer`.

    Raises:
        ValueError: If a line has too few columns or something other than a number, or is not the
            next step. One line, which names it.

    Attributes:
        blank: Whether an empty line has an empty answer: it is an error.
        strict: Whether a line without an answer is an error: without it all later ones would be
            those of other steps. Bytes that are not UTF-8 come as lone surrogates: in columns that
            are not read they change nothing.
    """

    blank = False
    strict = True

    def __init__(self, series, inputs, target, table=None, warn=None):
        self._series, self._target, self._warn = series, target, warn
        self._reader = SeriesReader(inputs, table)

    @property
    def filled(self):
        """The number of steps that were filled."""
        return self._reader.filled

    def __call__(self, numbers, texts, batch_size=None):
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
            self._warn(f"{where}: {count} step{'s' * (count > 1)} up to here filled")
        return steps


def read_targets(lines, target, table):
    """Returns what was observed in lines of a CSV file, numbers; `nan` where it is not known.

    The first line may be a header: then the target is the column of its name, or the only one
    there is. Otherwise every line holds the target alone.

    Args:
        lines: List of strings.
        target: Name of the target.
        table: A `TableFormat`.

    Returns:
        A number for each line, `nan` for a header.

    Raises:
        ValueError: If a line has something other than a number. It names the line.
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
            f"{where}: must be {name} alone, or the first line a header with this column. "
            f"Received: {len(cells)} columns."
        )
    try:
        return read_number(cells[0], name, where, decimal, may_be_empty=True)
    except ValueError:
        if number == 1:  # a header of one column, with another name
            return math.nan
        raise
