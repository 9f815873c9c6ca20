"""Text files, plain or gzip: any number of files with all columns, or of files for each column."""

import dataclasses
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.text.lines import binary_lines, require_regular, without_end
from keras_transformer.text.lists import END, ListColumn
from keras_transformer.training.data.sources.base import SPLITS, Source
from keras_transformer.training.data.sources.json_lines import JsonLines, is_json_lines

READ_AT_ONCE = 4096  # number of lines


class _WrongColumns(Exception):
    """Error in the columns of a line; its message does not name the line."""


@dataclasses.dataclass(frozen=True)
class _File:
    """A file that has been read and checked.

    Attributes:
        path: Path of the file.
        lines: Number of lines.
        empty: Numbers, counted from 1, of the lines in which a column is only white space.
    """

    path: Path
    lines: int
    empty: frozenset

    def dataset(self):
        """Returns the lines as a `tf.data.Dataset` of scalar strings.

        `tf.data.TextLineDataset` would drop carriage returns within lines, and everything after an
        empty member of a gzip file.
        """
        spec = tf.TensorSpec([None], tf.string)
        return tf.data.Dataset.from_generator(self._batches, output_signature=spec).unbatch()

    def _batches(self):
        lines = map(without_end, binary_lines(self.path))
        while batch := list(itertools.islice(lines, READ_AT_ONCE)):
            yield np.array(batch, object)


class _TwoFiles:
    """A corpus in two files, where line n of one belongs to line n of the other.

    Args:
        source, target: Paths of the files.
        names: Names of their columns.
    """

    def __init__(self, source, target, names):
        self._source, self._target = (
            _read(path, lambda text, name=name: _required([text], [name]))
            for path, name in zip((source, target), names, strict=True)
        )
        self.name = f"{self._source.path} and {self._target.path}"
        self.lines = self._source.lines
        if self.lines != self._target.lines:
            raise ValueError(
                f"{self.name} must have the same number of lines, since line n of one belongs to "
                f"line n of the other. Received: {self.lines:,} and {self._target.lines:,} lines."
            )
        self.empty = self._source.empty | self._target.empty
        self._paths = dict(zip(names, (self._source.path, self._target.path), strict=True))

    def path(self, column):
        """Returns the path of the file of a column, for errors; of both files for any other."""
        return self._paths.get(column, self.name)

    def rows(self):
        return tf.data.Dataset.zip((self._source.dataset(), self._target.dataset()))


class _Columns:
    """A corpus in one file, whose lines are columns separated by tabs.

    Args:
        path: Path of the file.
        names: Names of the columns.
        places: Numbers of these columns in a line, counted from 1. `None`: there are no others.
    """

    def __init__(self, path, names, places):
        self._names, self._whole = names, places is None and len(names) == 1
        self._columns = [place - 1 for place in places or range(1, len(names) + 1)]
        sides = self._sides if places else self._all
        self._file = _read(path, lambda text: _required(sides(text), names))
        self.name, self.lines = str(self._file.path), self._file.lines
        self.empty = self._file.empty

    def _all(self, text):
        if self._whole:
            return [text]
        sides, wanted = text.split("\t"), len(self._names)
        if len(sides) < wanted:
            raise _WrongColumns(f"must have a tab between {' and '.join(self._names)}.")
        if len(sides) > wanted:
            raise _WrongColumns(
                f"must have {wanted - 1} tab{'s' * (wanted > 2)}, or `tsv_columns` must name the "
                f"columns of {' and '.join(self._names)}. Received: {len(sides)} columns."
            )
        return sides

    def _sides(self, text):
        cells = text.split("\t")
        if len(cells) <= max(self._columns):
            raise _WrongColumns(
                f"must have at least {max(self._columns) + 1} columns, separated by tabs. "
                f"Received: {len(cells)}."
            )
        return [cells[column] for column in self._columns]

    def path(self, column):
        return self.name

    def rows(self):
        if self._whole:
            return self._file.dataset().map(lambda line: (line,))
        width = max(self._columns) + 1

        def sides(lines):
            cells = tf.strings.split(lines, "\t").to_tensor("", shape=[None, width])
            return tuple(cells[:, column] for column in self._columns)

        return self._file.dataset().batch(1024).map(sides).unbatch()


class TextData(Source):
    """Text files. Every file is read and checked once, by `check` or when it is first needed.

    `rows` leaves out examples with an empty column, which `left_out` counts. Lines end at a line
    feed; carriage returns before it are not part of the line, nor is a byte order mark at the start
    of a file.

    Args:
        files: Dictionary from a split to a list of corpora, which `rows` concatenates. A corpus is
            a tuple of two paths, a file for each column, or the path of a file with all columns,
            separated by tabs. A file whose name ends in `.gz` is decompressed.
        columns: Names of the columns.
        places: Numbers of these columns in a file with tabs, counted from 1. `None`: there are no
            others.
        train_weights: How often an epoch contains each example of each training corpus, on average.
            `None`: once.
        separator: String between the items of a `ListColumn`, which may be empty; not in a file
            whose name ends in `.jsonl` or `.jsonl.gz`, see `JsonLines`.

    Raises:
        ValueError: When a file is read: if it is missing, cannot be read, or has a line that is not
            UTF-8 or lacks a column; if two files differ in their number of lines; or if no example
            is left. One line, which names the file and, if possible, the line.
    """

    def __init__(
        self,
        files,
        columns=("source", "target"),
        places=None,
        train_weights=None,
        separator=",",
    ):
        self.splits = tuple(split for split in SPLITS if split in files)
        self._files, self._columns, self._places = files, columns, places
        first = files[self.splits[0]][0]
        name = " and ".join(map(str, first)) if isinstance(first, tuple) else first
        self.description = f"the text files beside {name}"
        self._train_weights, self._separator = train_weights, separator
        self._read = {}

    def left_out(self, split) -> int:
        self.check_split(split)
        return sum(len(corpus.empty) for corpus in self._corpora(split))

    def place(self, split, number, column=None) -> str:
        """Returns the file and the line of an example."""
        self.check_split(split)
        corpora = iter(self._corpora(split))
        while number > _size(corpus := next(corpora)):
            number -= _size(corpus)
        return f"{corpus.path(column)}, line {_line(number, corpus.empty)}"

    def check(self) -> None:  # noqa: D102
        for split in self.splits:
            self._corpora(split)

    def _corpora(self, split):
        """Returns the corpora of a split, whose files are read once."""
        if split not in self._read:
            corpora = self._files[split]
            self._read[split] = [_open(one, self._columns, self._places) for one in corpora]
        return self._read[split]

    def identity(self, split) -> dict[str, Any]:
        """Returns names, sizes and times of the files, the columns used, and the weights."""
        self.check_split(split)
        corpora = [one if isinstance(one, tuple) else (one,) for one in self._files[split]]
        files = [[_state(path) for path in one] for one in corpora]
        weights = self._train_weights if split == "train" else None
        lists = {"separator": self._separator} if self._has_lists else {}
        return {"files": files, "places": self._places, "weights": weights, **lists}

    def metadata(self) -> dict[str, Any]:
        """Returns the separator of lists, if there is a column of lists."""
        return {"separator": self._separator} if self._has_lists else {}

    @property
    def _has_lists(self):
        return any(isinstance(name, ListColumn) for name in self._columns)

    def rows(self, split) -> tf.data.Dataset:
        self.check_split(split)
        first, *others = (self._rows(corpus) for corpus in self._corpora(split))
        for other in others:
            first = first.concatenate(other)
        return first

    def _rows(self, corpus):
        rows = _without_empty(corpus, self._columns)
        if not self._has_lists or isinstance(corpus, JsonLines):
            return rows
        separator = re.escape(self._separator)

        def converted(*columns):
            return tuple(
                tf.strings.regex_replace(column, separator, END)
                if isinstance(name, ListColumn)
                else column
                for name, column in zip(self._columns, columns, strict=True)
            )

        return rows.map(converted)

    def count(self, split) -> int:
        self.check_split(split)
        return sum(map(_size, self._corpora(split)))

    def weights(self, split) -> np.ndarray | None:
        self.check_split(split)
        if split != "train" or self._train_weights is None:
            return None
        sizes = [*map(_size, self._corpora(split))]
        return np.repeat(np.asarray(self._train_weights, np.float64), sizes)


def open_text(settings, columns=("source", "target")) -> TextData:
    """Opens the files that a `[data]` section names; see `TextData`.

    Args:
        settings: The section.
        columns: Names of the columns.
    """
    files = {}
    for split in SPLITS:
        both, *sides = (
            _as_list(getattr(settings, split + side, None)) for side in ("", "_source", "_target")
        )
        if both or any(sides):
            files[split] = both or list(zip(*sides, strict=True))
    return TextData(
        files,
        columns,
        getattr(settings, "tsv_columns", None),
        getattr(settings, "train_weights", None),
        getattr(settings, "label_separator", None) or ",",
    )


def _state(path):
    path = Path(path).absolute()
    try:
        state = path.stat()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}.") from None
    return [str(path), state.st_size, state.st_mtime_ns]


def _as_list(paths):
    if paths is None:
        return []
    return paths if isinstance(paths, list) else [paths]


def _open(corpus, columns, places):
    if isinstance(corpus, tuple):
        corpus = _TwoFiles(*corpus, columns)
    elif is_json_lines(corpus):
        if places is not None:
            raise ValueError(f"`tsv_columns` has no effect on {corpus}, whose lines are JSON.")
        corpus = JsonLines(corpus, columns)
    else:
        corpus = _Columns(corpus, columns, places)
    if not _size(corpus):
        raise ValueError(
            f"{corpus.name} must contain at least one line without an empty column. "
            f"Received: {corpus.lines:,} lines."
        )
    return corpus


def _size(corpus):
    """Returns the number of examples, which are the lines without an empty column."""
    return corpus.lines - len(corpus.empty)


def _line(number, empty):
    """Returns the number of the line of an example; both are counted from 1.

    Args:
        number: Number of the example.
        empty: Numbers of the lines without an example.
    """
    for line in sorted(empty):
        number += line <= number
    return number


def _required(sides, names):
    """Returns the columns that must have a text: all but lists."""
    return [
        side for side, name in zip(sides, names, strict=True) if not isinstance(name, ListColumn)
    ]


def _without_empty(corpus, names):
    if not corpus.empty:
        return corpus.rows()
    return corpus.rows().filter(
        lambda *columns: tf.reduce_all([_has_text(side) for side in _required(columns, names)])
    )


def _read(path, sides=lambda text: [text]):
    """Reads a file once, line by line, and checks that it is UTF-8.

    Args:
        path: Path of the file.
        sides: Function from a line to its columns, which must not be empty; it raises
            `_WrongColumns` for a wrong line.
    """
    path = Path(path)
    require_regular(path)
    number, empty = 0, []
    try:
        for number, line in enumerate(binary_lines(path), start=1):
            if not all(side.strip() for side in sides(line.decode("utf-8"))):
                empty.append(number)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}, line {number}: must be UTF-8. Received: "
            f"byte 0x{error.object[error.start]:02x} at position {error.start + 1} of the line."
        ) from None
    except _WrongColumns as error:
        raise ValueError(f"{path}, line {number}: {error}") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}.") from None
    return _File(path, number, frozenset(empty))


def _has_text(line):
    # `str.strip` removes the same characters, so that the counts agree with those of `_read`.
    return tf.strings.regex_full_match(line, r"(?s).*[^\s\pZ\x0b\x1c-\x1f\x{85}].*")
