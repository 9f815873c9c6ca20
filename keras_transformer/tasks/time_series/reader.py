"""Reading of a series line by line, as the steps that a model reads."""

import numpy as np

from keras_transformer.tasks.time_series.dates import read_date
from keras_transformer.tasks.time_series.gaps import fill_gaps, steps_since
from keras_transformer.tasks.time_series.steps import TimeStep
from keras_transformer.tasks.time_series.table import (
    Columns,
    find_columns,
    is_header,
    read_number,
    split,
)
from keras_transformer.tasks.time_series.table_format import TableFormat


class SeriesReader:
    """Reads the inputs in consecutive lines of a CSV file.

    The first line may be a header. The inputs are then the columns with their names. If the column
    of dates used in training is also present, dates are checked, and gaps are filled in the
    same way. Other columns are not read. Without a header, every line contains the inputs in order.

    Args:
        inputs: Names of the inputs.
        table: A `TableFormat`.

    Attributes:
        filled: Number of filled steps.
    """

    def __init__(self, inputs, table=None):
        self._inputs, self._table = tuple(inputs), table or TableFormat()
        places, separator = range(len(inputs)), self._table.separator
        self._columns = Columns(self._inputs, tuple(places), len(inputs), separator)
        self._step = TimeStep.parse(self._table.step) if self._table.step else None
        self._before = None  # `Moment` of the previous line
        self._rows = np.zeros((0, len(inputs)))  # the last steps, before gaps are filled
        self.filled = 0

    def read_header(self, line) -> bool:
        """Finds the columns in the first line, and returns whether the line is a header.

        Raises:
            ValueError: If a column is missing, or two columns have the same name.
        """
        if not is_header(line, self._inputs, self._table.decimal):
            return False
        columns = find_columns(line, self._inputs, "line 1", likely=self._table.separator)
        date = self._table.date_column
        if self._step is not None and date in split(line, columns.separator, "line 1"):
            columns = find_columns(line, (*self._inputs, date), "line 1", columns.separator)
        self._columns = columns
        return True

    def read(self, line, where) -> np.ndarray:
        """Returns the steps of a line: its own, after the filled steps of a gap before it.

        Args:
            line: String.
            where: Name of the line in errors, such as `"line 3"`.

        Returns:
            `[steps, F]`.

        Raises:
            ValueError: If the line is not valid, is too early, or follows a gap that is not filled.
        """
        table, cells = self._table, self._columns.cells(line, where)
        count = self._steps_to(cells[-1], where) if len(cells) > len(self._inputs) else 1
        may_be_empty = table.fill == "forward"
        row = [
            read_number(cell, name, where, table.decimal, may_be_empty)
            for cell, name in zip(cells, self._inputs, strict=False)
        ]
        if table.fill is None:
            return np.array([row])
        return self._filled(count, row, where)

    def _steps_to(self, date, where):
        """Returns the number of steps from the date of the previous line to `date`."""
        moment, before = read_date(date, where, self._table.date_order), self._before
        self._before = moment
        if before is None:
            return 1
        fill, limit = self._table.fill, self._table.fill_limit
        return steps_since(before, moment, self._step, where, fill, limit)

    def _filled(self, count, row, where):
        table, gap = self._table, np.full((count - 1, len(row)), np.nan)
        rows = np.concatenate([self._rows, gap, [row]])
        self._rows = rows[-table.fill_limit - 1 :]
        steps = fill_gaps(rows, table.fill, table.fill_limit)[-count:]
        for name, values in zip(self._inputs, steps.T, strict=True):
            if not np.isfinite(values).all():
                raise ValueError(
                    f"{where}: {name} is empty up to here and cannot be filled: there must be an "
                    f"earlier value, and at most {table.fill_limit} steps without one."
                )
        self.filled += int((~np.isfinite(rows[-count:])).any(axis=1).sum())
        return steps
