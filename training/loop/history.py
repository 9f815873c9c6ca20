"""The figures of a training over its updates, in a table that any program can read."""

import csv
import io
from pathlib import Path

from keras_transformer.files import write_text


def columns_of(task):
    """Returns the columns of the table for a `Task`, named as in TensorBoard.

    Nothing is among them that depends on the speed of the machine.
    """
    training = ("train/loss", "train/learning_rate", f"train/{task.unit}")
    return (*training, *(f"validation/{name}" for name in task.metrics))


class History:
    """`history.csv` of a run: one row for each update at which something was measured.

    The updates grow from row to row, also after a training that was killed: `restore` drops what
    lies after the checkpoint from which it goes on. A row is written when the next one begins, or
    by `flush`, which every checkpoint is preceded by; what a process that is killed has not
    written yet lies after its last checkpoint.

    The first `train/loss` after a restart is the mean since then, not since the row before.

    Args:
        path: The file; `None` to write nothing.
        columns: Names of the figures.
    """

    def __init__(self, path, columns):
        self.path = None if path is None else Path(path)
        self.columns = tuple(columns)
        self.rows = []  # dictionaries, with those figures that were measured
        self._written = 0

    @classmethod
    def read(cls, path, columns):
        """Returns the rows of a file up to the first damaged one; the file is only read."""
        history = cls(path, columns)
        history.rows = list(history._read())
        history._written = len(history.rows)
        return history

    def restore(self, update):
        """Reads the file and drops every row after `update`, and from the first damaged one on."""
        if self.path is None:
            return
        self.rows = [row for row in self._read() if row["update"] <= update]
        lines = [["update", *self.columns], *map(self._cells, self.rows)]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, _csv(lines))
        self._written = len(self.rows)

    def add(self, update, figures):
        """Adds figures to the row of an update; those without a column are left out.

        Raises:
            ValueError: If a later update, or this one, has already been written.
        """
        figures = {name: float(value) for name, value in figures.items() if name in self.columns}
        last = self.rows[-1]["update"] if self.rows else 0
        if update < last or (update == last and self._written == len(self.rows)):
            raise ValueError(
                f"`update` must grow from row to row. Received: update={update} after {last}."
            )
        if update == last:
            self.rows[-1].update(figures)
        else:
            self.flush()
            self.rows.append({"update": update, **figures})

    def flush(self):
        """Appends the rows that are not written yet.

        Raises:
            OSError: If they cannot be, for example because the disk is full.
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

    def curve(self, name):
        """Returns the updates at which a figure was measured, and its values: two lists."""
        points = [(row["update"], row[name]) for row in self.rows if name in row]
        return [update for update, _ in points], [value for _, value in points]

    def _cells(self, row):
        figures = (repr(row[name]) if name in row else "" for name in self.columns)
        return [row["update"], *figures]

    def _read(self):
        """Yields the rows of the file up to the first damaged one, such as a half-written one."""
        if not self.path.exists():
            return
        text = self.path.read_text("utf-8", errors="replace")
        header, *lines = text.split("\n")[:-1] or [""]
        if header != _csv([["update", *self.columns]]).rstrip():
            return
        last = 0
        for line in lines:
            update, *cells = line.split(",")
            try:
                figures = zip(self.columns, cells, strict=True)
                row = {name: float(cell) for name, cell in figures if cell}
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
