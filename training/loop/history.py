"""History of the metrics of a run, a CSV table that any program can read."""

import csv
import io
from pathlib import Path
from typing import Any

from keras_transformer.files import write_text


def columns_of(task, options=None) -> tuple[str, ...]:
    """Returns the columns of the table of a run, named as in TensorBoard.

    None of them depends on the speed of the machine.

    Args:
        task: The `Task`.
        options: The `[training]` section, whose metrics have a column. `None`: all metrics.
    """
    training = ("train/loss", "train/learning_rate", f"train/{task.unit}")
    measured = [
        name
        for name, metric in task.metrics.items()
        if None in (options, metric.needs) or getattr(options, metric.needs)
    ]
    return (*training, *(f"validation/{name}" for name in measured))


class History:
    """`history.csv` of a run: a row for each update after which a metric was measured.

    Updates increase from row to row, even if training is killed and resumed: `restore` drops
    the rows after the checkpoint from which it resumes. A row is written when the next one begins,
    or by `flush`; every checkpoint calls `flush` first, so that rows lost with a killed process are
    always after its last checkpoint.

    The first `train/loss` after a restart is the mean since the restart, not since the last row.

    Args:
        path: Path of the file. `None`: nothing is written.
        columns: Names of the metrics.
    """

    def __init__(self, path, columns):
        self.path: Any = None if path is None else Path(path)
        self.columns = tuple(columns)
        self.rows = []  # dictionaries of `update` and the metrics that were measured
        self._written = 0

    @classmethod
    def read(cls, path, columns) -> "History":
        """Returns the history in a file, up to the first damaged row; the file does not change.

        The file may have some of the columns only.
        """
        history = cls(path, columns)
        history.rows = list(history._read())
        history._written = len(history.rows)
        return history

    def restore(self, update) -> None:
        """Reads the file and drops the rows after `update`, or from the first damaged row on."""
        if self.path is None:
            return
        self.rows = [row for row in self._read() if row["update"] <= update]
        lines = [["update", *self.columns], *map(self._cells, self.rows)]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, _csv(lines))
        self._written = len(self.rows)

    def add(self, update, values) -> None:
        """Adds values of metrics to the row of an update; values without a column are dropped.

        Raises:
            ValueError: If this update or a later one has already been written.
        """
        values = {name: float(value) for name, value in values.items() if name in self.columns}
        last = self.rows[-1]["update"] if self.rows else 0
        if update < last or (update == last and self._written == len(self.rows)):
            raise ValueError(
                f"`update` must increase from row to row. Received: update={update} after {last}."
            )
        if update == last:
            self.rows[-1].update(values)
        else:
            self.flush()
            self.rows.append({"update": update, **values})

    def flush(self) -> None:
        """Appends the rows that are not in the file yet.

        Raises:
            OSError: If the file cannot be written, for example because the disk is full.
        """
        new = self.rows[self._written :]
        if self.path is None:
            return
        try:
            with open(self.path, "ab") as file:
                file.write(_csv(map(self._cells, new)).encode())
        except OSError as error:
            reason = error.strerror or error
            raise OSError(f"{self.path} cannot be written: {reason}.") from error
        self._written = len(self.rows)

    def curve(self, name) -> tuple[list[int], list[float]]:
        """Returns two lists: the updates after which a metric was measured, and its values."""
        points = [(row["update"], row[name]) for row in self.rows if name in row]
        return [update for update, _ in points], [value for _, value in points]

    def _cells(self, row):
        values = (repr(row[name]) if name in row else "" for name in self.columns)
        return [row["update"], *values]

    def _read(self):
        """Yields the rows of the file up to the first damaged one, such as an incomplete line."""
        if not self.path.exists():
            return
        text = self.path.read_text("utf-8", errors="replace")
        header, *lines = text.split("\n")[:-1] or [""]
        first, *names = header.split(",")
        if first != "update" or not {*names} <= {*self.columns}:
            return
        last = 0
        for line in lines:
            update, *cells = line.split(",")
            try:
                pairs = zip(names, cells, strict=True)
                row = {name: float(cell) for name, cell in pairs if cell}
                row = {"update": int(update), **row}
            except ValueError:
                return
            if row["update"] <= last:
                return
            last = row["update"]
            yield row


def _csv(lines):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()
