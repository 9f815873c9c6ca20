"""A map from Unicode code points to others, a two-level table in the graph."""

import numpy as np
import tensorflow as tf

from keras_transformer.tensors import Tensor
from keras_transformer.text.ragged_rows import row_ids, row_sums

CODE_POINTS = 0x110000
PAGE = 256  # code points of a page of the table; most pages are equal and stored once
KEPT = 0  # the entry of a code point that does not change


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
        pages, self._page_of = np.unique(entries.reshape(-1, PAGE), axis=0, return_inverse=True)
        self._entries = pages.reshape(-1)
        self._page_of = self._page_of.reshape(-1).astype(np.int32)
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
        page = tf.gather(tf.constant(self._page_of), flat // PAGE)
        entry = tf.gather(tf.constant(self._entries), page * PAGE + flat % PAGE)
        lengths = tf.gather(tf.constant(self._lengths), entry)
        # Index of each new code point: the start of its sequence plus its index in the sequence.
        total = tf.cumsum(lengths, exclusive=True)
        first = tf.gather(tf.constant(self._starts), entry) - total
        places = tf.repeat(first, lengths) + tf.range(tf.reduce_sum(lengths))
        mapped = tf.gather(tf.constant(self._values), places)
        return tf.where(mapped < 0, tf.repeat(flat, lengths), mapped), lengths


def decode_with_places(strings) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
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
