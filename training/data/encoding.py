"""Encoding of a data set in chunks, which are checked and sorted by length."""

import dataclasses
import zlib
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.packing import pack_texts
from keras_transformer.training.data.stream import unconverted

BATCH = 1024  # most examples that are encoded together; see `Training.encoded_together`
CHUNK = 64  # number of batches in a chunk, which has 65,536 examples or fewer
LONGEST = 200  # characters of a value in an error
COUNTS = ("rows", "examples", "too_long", "empty", "truncated")


@dataclasses.dataclass(frozen=True)
class Limits:
    """Treatment of long examples.

    Args:
        max_length: Maximum length of a sequence, such as a text in tokens including its end.
            Examples with a longer or an empty sequence are left out. `None`: there is no limit.
        truncate_source: Whether to truncate the first sequence of an example if it is too long.
        packed: Whether to pack several examples into a row, and to cut longer ones into parts: see
            `pack_texts`.
    """

    max_length: int | None = None
    truncate_source: bool = False
    packed: bool = False


@dataclasses.dataclass
class Column:
    """Values of some examples in one column.

    Args:
        values: Items of all examples, `[items, ...]`; `[examples, ...]` if it is not ragged.
        lengths: Number of items of each example, `[examples]`. `None`: the column is not ragged.
    """

    values: np.ndarray
    lengths: np.ndarray | None = None

    def take(self, numbers) -> "Column":
        """Returns the column of some examples, in the order of `numbers`."""
        if self.lengths is None:
            return Column(self.values[numbers])
        ends = np.cumsum(self.lengths)
        lengths = self.lengths[numbers]
        starts = (ends - self.lengths)[numbers]
        places = np.arange(lengths.sum()) + np.repeat(
            starts - np.cumsum(lengths) + lengths, lengths
        )
        return Column(self.values[places], lengths)

    @staticmethod
    def joined(columns) -> "Column":
        """Returns the concatenation of columns."""
        values = np.concatenate([column.values for column in columns])
        ragged = columns[0].lengths is not None
        return Column(values, np.concatenate([c.lengths for c in columns]) if ragged else None)


@dataclasses.dataclass
class Chunk:
    """Encoded examples of a contiguous part of a data set, sorted by length, then by weight.

    Args:
        columns: Dictionary of `Column`s.
        lengths: Length of the longest sequence of each example, `[examples]`; 1 if it has none.
        weights: How often an epoch contains each example, on average, `[examples]`.
        counts: Dictionary of `COUNTS`: numbers of rows of the data set that were read; of examples
            in the columns (packed rows may contain several); of examples that were left out because
            they are too long or empty; and of examples that were truncated.
        checksum: Checksum of all values in the order of the data set.
    """

    columns: dict
    lengths: np.ndarray
    weights: np.ndarray
    counts: dict
    checksum: int


class Encoder:
    """Encoder of a data set, in the graph and on all processors.

    Args:
        training: The `Training` of the task, which encodes columns.
        limits: `Limits`.
        place: Function that returns where an example is, for errors: see `Source.place`; its
            arguments are the number of the example and the name of the column.
        texts: Names of the columns whose strings are stored as well, as `NAME.text`.
    """

    def __init__(self, training, limits, place, texts=()):
        self._training, self._fields = training, training.fields
        self._limits, self._place, self._texts = limits, place, texts
        self._ragged = [name for name, field in self._fields.items() if field.is_ragged]

    @property
    def longest(self) -> dict[str, int]:
        """Maximum lengths of the columns that have their own."""
        lengths = {name: self._fields[name].max_length for name in self._ragged}
        return {name: length for name, length in lengths.items() if length is not None}

    @property
    def batch(self) -> int:
        """Number of examples that are encoded together."""
        return min(BATCH, self._training.encoded_together or BATCH)

    @property
    def chunk(self) -> int:
        """Number of rows of a chunk; the last one has fewer."""
        return CHUNK * self.batch

    def chunks(self, rows, weights=None, skip=0) -> Iterator[Chunk]:
        """Yields `Chunk`s of `chunk` rows, in order; the last has fewer, perhaps none.

        Args:
            rows: A `tf.data.Dataset` of tuples, one field for each column.
            weights: How often an epoch contains each of `rows`, on average. `None`: once.
            skip: Number of chunks to skip at the beginning; they are read but not encoded.

        Raises:
            ValueError: If a value cannot be used, or the number of weights is not the number of
                rows.
        """

        def encode(*values):
            columns = dict(zip(self._training.columns, values, strict=True))
            return self._training.encode(columns), columns

        batches = rows.batch(self.batch).skip(skip * CHUNK)
        encoded = batches.map(unconverted(encode), num_parallel_calls=tf.data.AUTOTUNE)
        begin, parts = skip * self.chunk, []
        for batch, columns in encoded.prefetch(2):
            before = begin + sum(part[1]["rows"] for part in parts)
            parts.append(self._part(batch, columns, before))
            if len(parts) == CHUNK:
                yield self._chunk(parts, weights, begin)
                begin, parts = begin + self.chunk, []
        last = self._chunk(parts, weights, begin)
        if weights is not None and begin + last.counts["rows"] != len(weights):
            raise ValueError(
                "`weights` must contain a number for each example. "
                f"Received: {len(weights)} for {begin + last.counts['rows']}."
            )
        yield last

    def _part(self, batch, columns, before):
        """Returns the kept examples of a batch: columns, counts and indices of the rows."""
        check_columns(self._fields, batch, columns, self._place, before)
        rows = _rows_of(batch)
        empty = too_long = is_truncated = np.zeros(rows, bool)
        lengths = {name: batch[name].row_lengths().numpy() for name in self._ragged}
        if lengths:
            shortest = {name: self._fields[name].min_length for name in self._ragged}
            empty = np.any([lengths[name] < shortest[name] for name in self._ragged], axis=0)
        limit = self._limits.max_length
        if lengths and limit is not None and not self._limits.packed:
            if self._limits.truncate_source:
                first = self._ragged[0]
                batch = {**batch, first: self._fields[first].truncate(batch[first], limit)}
                is_truncated, lengths[first] = (
                    lengths[first] > limit,
                    batch[first].row_lengths().numpy(),
                )
            most = dict.fromkeys(self._ragged, limit) | self.longest
            too_long = ~empty & np.any([lengths[n] > most[n] for n in self._ragged], axis=0)
        kept = np.flatnonzero(~(empty | too_long))
        found = {
            name: _column(batch[name], field.dtype).take(kept)
            for name, field in self._fields.items()
        }
        for name in self._texts:
            found[f"{name}.text"] = _bytes(columns[name].numpy()[kept])
        sums = {"rows": rows, "examples": len(kept), "too_long": int(too_long.sum())}
        sums |= {"empty": int(empty.sum()), "truncated": int(is_truncated[kept].sum())}
        return found, sums, before + kept

    def _chunk(self, parts, weights, begin):
        """Returns the chunk that consists of some parts."""
        counts = {name: sum(part[1][name] for part in parts) for name in COUNTS}
        if not parts:
            return Chunk({}, np.zeros(0, np.int64), np.zeros(0), counts, 0)
        columns = {name: Column.joined([part[0][name] for part in parts]) for name in parts[0][0]}
        numbers = np.concatenate([part[2] for part in parts])
        if self._limits.packed:
            ((name, texts),) = columns.items()
            columns[name], counts["truncated"] = pack_texts(texts, self._limits.max_length)
        size = len(next(_lengths(columns)))
        own = np.ones(size)
        if weights is not None:
            own = np.asarray(weights, np.float64)[numbers[numbers < len(weights)]]
            if len(own) < size:
                raise ValueError(
                    "`weights` must contain a number for each example. "
                    f"Received: {len(weights)} for {begin + counts['rows']}."
                )
        checksum = zlib.crc32(own)
        for column in columns.values():
            for array in (column.values, column.lengths):
                if array is not None:
                    checksum = zlib.crc32(np.ascontiguousarray(array), checksum)
        lengths = [columns[name].lengths for name in self._ragged]
        longest = np.maximum.reduce(lengths) if lengths else np.ones(size, np.int64)
        order = np.lexsort((own, longest))
        columns = {name: column.take(order) for name, column in columns.items()}
        return Chunk(columns, longest[order], own[order], counts, checksum)


def check_columns(fields, encoded, columns, place, before=0) -> None:
    """Raises a `ValueError` if an encoded column has a value that cannot be used.

    Args:
        fields: Dictionary of the `Field` of each encoded column.
        encoded: Dictionary of the encoded columns.
        columns: Dictionary of the columns.
        place: See `Encoder`.
        before: Number of examples of the split before the first one.
    """
    for name, field in fields.items():
        valid = field.is_valid(encoded[name])
        if valid is not None and (wrong := np.flatnonzero(~valid.numpy())).size:
            raise ValueError(
                f"{place(int(before + wrong[0] + 1), name)}: `{name}` must be {field.explain()}. "
                f"Received: {_shown(columns[name][wrong[0]])}."
            )


def _lengths(columns):
    """Yields an array for each column whose length is the number of examples."""
    for column in columns.values():
        yield column.values if column.lengths is None else column.lengths


def _rows_of(batch):
    column = next(iter(batch.values()))
    return int(column.nrows() if isinstance(column, tf.RaggedTensor) else column.shape[0])


def _shown(value):
    """Returns a value of the data, formatted for an error."""
    value = value.numpy()
    text = repr(value.decode("utf-8", "replace") if isinstance(value, bytes) else value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _column(encoded, dtype):
    if not isinstance(encoded, tf.RaggedTensor):
        return Column(encoded.numpy().astype(dtype, copy=False))
    values = encoded.flat_values.numpy().astype(dtype, copy=False)
    return Column(values, encoded.row_lengths().numpy())


def _bytes(strings):
    """Returns strings as a ragged column of bytes."""
    lengths = np.fromiter(map(len, strings), np.int64, len(strings))
    return Column(np.frombuffer(b"".join(strings), np.uint8), lengths)
