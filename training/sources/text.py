"""Plain parallel text: two UTF-8 files, line n of one translates line n of the other."""

import dataclasses
from pathlib import Path

import tensorflow as tf

from keras_transformer.lines import BOM

from .base import SPLITS, ParallelData


@dataclasses.dataclass(frozen=True)
class _Lines:
    """What one reading of a file has found: line counts and places, counted from 1."""

    path: Path
    count: int
    empty: frozenset  # numbers of the lines with nothing but white space
    marked: bool  # begins with a byte order mark


class TextData(ParallelData):
    """Parallel text files. Every file is read and checked once, when the object is made.

    Pairs with an empty side are left out of `pairs` and counted in `empty`. Lines end at a line
    feed; carriage returns are not part of a line, nor is a byte order mark at the start of a file.

    Args:
        files: Dictionary from a split to its two paths, source and target.

    Attributes:
        empty: Dictionary from a split to the number of pairs left out.

    Raises:
        ValueError: If a file is missing, cannot be read or has a line that is not UTF-8, if two
            files differ in their number of lines, or if no pair is left. One line, which names the
            file and, where there is one, the line.
    """

    def __init__(self, files):
        self.splits = tuple(split for split in SPLITS if split in files)
        self.description = f"the text files beside {files[self.splits[0]][0]}"
        self._sides = {split: [_read(path) for path in files[split]] for split in self.splits}
        self.empty = {}
        for split, (source, target) in self._sides.items():
            if source.count != target.count:
                raise ValueError(
                    f"{source.path} and {target.path} must have the same number of lines, since "
                    "line n of one translates line n of the other. "
                    f"Received: {source.count:,} and {target.count:,} lines."
                )
            self.empty[split] = len(source.empty | target.empty)
            if self.count(split) == 0:
                raise ValueError(
                    f"{source.path} and {target.path} must hold at least one pair of lines that "
                    f"are not empty. Received: {source.count:,} lines."
                )

    def pairs(self, split):
        self.check_split(split)
        pairs = tf.data.Dataset.zip(tuple(_lines(side) for side in self._sides[split]))
        if self.empty[split]:
            pairs = pairs.filter(lambda source, target: _has_text(source) & _has_text(target))
        return pairs

    def count(self, split):
        self.check_split(split)
        return self._sides[split][0].count - self.empty[split]


def open_text(settings):
    """Opens the files that a `[data]` section names; see `TextData`."""
    files = {}
    for split in SPLITS:
        sides = [getattr(settings, f"{split}_{side}", None) for side in ("source", "target")]
        if any(sides):
            files[split] = sides
    return TextData(files)


def _read(path):
    """Reads a file once, line by line, and checks that it is UTF-8."""
    path = Path(path)
    number, empty, marked = 0, [], False
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if number == 1 and line.startswith(BOM):
                    line, marked = line[len(BOM) :], True
                if not line.decode("utf-8").strip():
                    empty.append(number)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}, line {number}: must be UTF-8. Received: "
            f"byte 0x{error.object[error.start]:02x} at position {error.start + 1} of the line."
        ) from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}.") from None
    return _Lines(path, number, frozenset(empty), marked)


def _lines(side):
    lines = tf.data.TextLineDataset(str(side.path))
    if not side.marked:
        return lines
    first = lines.take(1).map(lambda line: tf.strings.substr(line, len(BOM), -1))
    return first.concatenate(lines.skip(1))


def _has_text(line):
    # \pZ and the controls are what `str.strip` removes, too: the counts agree with `_read`'s.
    return tf.strings.regex_full_match(line, r"(?s).*[^\s\pZ\x0b\x1c-\x1f\x{85}].*")
