"""Files with an object in JSON on each line."""

import itertools
import json
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_transformer.text.lines import binary_lines, decode_line, require_regular
from keras_transformer.text.lists import END, ListColumn

READ_AT_ONCE = 4096  # number of lines
SUFFIX = ".jsonl"


def is_json_lines(path) -> bool:
    """Returns whether a file has an object in JSON on each line, by its name."""
    return str(path).removesuffix(".gz").endswith(SUFFIX)


class JsonLines:
    """A corpus in one file, whose lines are objects in JSON with a key for each column.

    Other keys are ignored. A value is a string; that of a `ListColumn` is a list of strings. The
    file is read and checked once.

    Args:
        path: Path of the file; it is decompressed if its name ends in `.gz`.
        names: Names of the columns.

    Raises:
        ValueError: If the file cannot be read, or a line is something else. One line, which names
            the file and the line.
    """

    def __init__(self, path, names):
        self._path, self._names, self.name = Path(path), names, str(path)
        require_regular(path)
        self.lines, self.empty = 0, set()
        try:
            for texts in self._texts():
                self.lines += 1
                required = zip(texts, names, strict=True)
                if not all(t.strip() for t, n in required if not _is_list(n)):
                    self.empty.add(self.lines)
        except OSError as error:
            raise ValueError(f"{path}: cannot be read: {error.strerror}.") from None

    def path(self, column):
        return self.name

    def rows(self):
        """Returns the examples as a `tf.data.Dataset` of tuples of scalar strings."""
        spec = tuple(tf.TensorSpec([None], tf.string) for _ in self._names)
        return tf.data.Dataset.from_generator(self._batches, output_signature=spec).unbatch()

    def _batches(self):
        texts = self._texts()
        while batch := list(itertools.islice(texts, READ_AT_ONCE)):
            yield tuple(
                np.array([text.encode() for text in column], object)
                for column in zip(*batch, strict=True)
            )

    def _texts(self):
        """Yields the columns of each line, strings."""
        for number, line in enumerate(binary_lines(self._path), start=1):
            text, place = decode_line(self._path, number, line), f"{self._path}, line {number}"
            try:
                values = json.loads(text)
            except (ValueError, RecursionError):
                values = None
            if not isinstance(values, dict):
                raise ValueError(f"{place}: must be an object in JSON. Received: {text[:60]!r}.")
            yield [self._text(place, name, values.get(name)) for name in self._names]

    def _text(self, place, name, value):
        if not _is_list(name):
            if isinstance(value, str) and _is_unicode(value):
                return value
            raise ValueError(f"{place}: `{name}` must be a string. Received: {_shown(value)}.")
        if isinstance(value, list) and all(_is_item(item) for item in value):
            return END.join(value)
        raise ValueError(
            f"{place}: `{name}` must be a list of strings without line feeds. "
            f"Received: {_shown(value)}."
        )


def _is_list(name):
    return isinstance(name, ListColumn)


def _is_item(value):
    return isinstance(value, str) and END not in value and _is_unicode(value)


def _is_unicode(text):
    """Returns whether a string has no lone surrogates, which JSON can express and UTF-8 cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _shown(value):
    return "nothing" if value is None else repr(value)[:60]
