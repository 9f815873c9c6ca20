"""Maps from Unicode code points to others and to numbers, two-level tables in the graph."""

import numpy as np

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor
from keras_transformer.text.ragged_rows import row_ids, row_sums

CODE_POINTS = 0x110000
PAGE = 256  # code points of a page of the table; most pages are equal and stored once
KEPT = 0  # the entry of a code point that does not change


class CodePointTable:
    """A number for each code point, looked up in a graph.

    Args:
        values: The numbers, int32 `[CODE_POINTS]`.

    Call arguments:
        points: Code points, int32 `[N]`.

    Returns:
        Numbers, int32 `[N]`.
    """

    def __init__(self, values):
        pages = {}
        page_of = [
            pages.setdefault(page.tobytes(), len(pages)) for page in values.reshape(-1, PAGE)
        ]
        self._entries = np.frombuffer(b"".join(pages), values.dtype)
        self._page_of = np.array(page_of, np.int32)

    def __call__(self, points) -> Tensor:
        page = tf.gather(tf.constant(self._page_of), points // PAGE)
        return tf.gather(tf.constant(self._entries), page * PAGE + points % PAGE)


class CodePointMap:
    """Replaces code points of strings by sequences of code points, in a graph.

    Args:
        changes: Dictionary from code points to sequences of code points, which may be empty. Other
            code points do not change.

    Call arguments:
        strings: UTF-8 strings, `[B]`. Invalid UTF-8 is replaced by U+FFFD first.

    Returns:
        Strings, `[B]`.
    """

    def __init__(self, changes):
        sequences = {(-1,): KEPT}  # -1 stands for the code point itself
        entries = np.zeros(CODE_POINTS, np.int32)
        for point, sequence in changes.items():
            entries[point] = sequences.setdefault(tuple(sequence), len(sequences))
        self._entry_of = CodePointTable(entries)
        self._lengths = np.array([len(sequence) for sequence in sequences], np.int32)
        self._starts = np.cumsum(self._lengths, dtype=np.int32) - self._lengths
        self._values = np.array([point for sequence in sequences for point in sequence], np.int32)

    def __call__(self, strings) -> Tensor:
        points = tf.strings.unicode_decode(strings, "UTF-8", errors="replace")  # [B, (N)]
        mapped, lengths = self.map(points.values)
        counts = row_sums(points.with_values(lengths))  # [B]
        mapped = tf.RaggedTensor.from_row_lengths(mapped, counts, validate=False)
        return tf.strings.unicode_encode(mapped, "UTF-8", errors="ignore")

    def map(self, flat) -> tuple[Tensor, Tensor]:
        """Returns the new code points of code points `[N]`, and the number for each, `[N]`."""
        entry = self._entry_of(flat)
        lengths = tf.gather(tf.constant(self._lengths), entry)
        # Index of each new code point: the start of its sequence plus its index in the sequence.
        total = tf.cumsum(lengths, exclusive=True)
        first = tf.gather(tf.constant(self._starts), entry) - total
        places = tf.repeat(first, lengths) + tf.range(tf.reduce_sum(lengths))
        mapped = tf.gather(tf.constant(self._values), places)
        return tf.where(mapped < 0, tf.repeat(flat, lengths), mapped), lengths


def decode_with_places(strings) -> "tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]":
    """Returns ragged code points `[B, (N)]`, and the bytes at which each begins and ends.

    Args:
        strings: UTF-8 strings, `[B]`. Invalid UTF-8 becomes U+FFFD.

    Returns:
        Ragged int32 `[B, (N)]`, and two int32 `[N of all]`.
    """
    points, offsets = tf.strings.unicode_decode_with_offsets(strings, "UTF-8", errors="replace")
    begins, row = tf.cast(offsets.values, tf.int32), row_ids(points)
    ends = tf.concat([begins[1:], [0]], 0)[: tf.size(begins)]
    is_last = tf.concat([row[1:] != row[:-1], [True]], 0)[: tf.size(row)]
    ends = tf.where(is_last, tf.gather(tf.strings.length(strings), row), ends)
    return points, begins, ends


def members(ranges) -> frozenset[int]:
    """Returns the code points in pairs of first and last code point."""
    return frozenset(point for first, last in ranges for point in range(first, last + 1))


def ranges_of(points) -> list[tuple[int, int]]:
    """Returns sorted pairs of first and last code point, the inverse of `members`."""
    ranges = []
    for point in sorted(points):
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1] = ranges[-1][0], point
        else:
            ranges.append((point, point))
    return ranges


def shifted(values, distance, filling) -> Tensor:
    """Returns values `[N]` moved to later places, or to earlier ones if `distance` is negative."""
    room = tf.fill([abs(distance)], tf.constant(filling, values.dtype))
    if distance > 0:
        return tf.concat([room, values], 0)[: tf.size(values)]
    return tf.concat([values, room], 0)[-distance:]


def latest(flags) -> Tensor:
    """Returns the latest place of a true flag at or before each place, or -1, int32 `[N]`."""
    places = tf.cast(tf.where(flags)[:, 0], tf.int32)
    return tf.gather(tf.concat([[-1], places], 0), tf.cumsum(tf.cast(flags, tf.int32)))
