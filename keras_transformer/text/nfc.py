"""Unicode's composed normal form, NFC, in the graph, as Hugging Face's tokenizers compute it.

Those follow Unicode 9, so that newer letters and marks stay as they are.

Reference: Unicode Standard Annex 15; The Unicode Standard, section 3.11 and 3.12.
"""

import functools
import typing
import unicodedata
from typing import Any

import numpy as np

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor
from keras_transformer.text.code_points import (
    CODE_POINTS,
    CodePointMap,
    CodePointTable,
    latest,
    members,
    ranges_of,
    shifted,
)
from keras_transformer.text.ragged_rows import row_ids
from keras_transformer.text.unicode_ranges import APART, ORDERED, WHOLE

# Letters of Korean syllables: the first of each kind, and the numbers of vowels and last letters.
SYLLABLE, LEAD, VOWEL, TAIL = 0xAC00, 0x1100, 0x1161, 0x11A7
LEADS, VOWELS, TAILS = 19, 21, 28
# Vowels and last letters are composed with what stands before them.
KOREAN_SECONDS = (VOWEL, VOWEL + VOWELS - 1), (TAIL + 1, TAIL + TAILS - 1)
SYLLABLES = range(SYLLABLE, SYLLABLE + LEADS * VOWELS * TAILS)
SHIFT = 2**21  # above every code point
NONE = -1  # for no code point


class Composed(typing.NamedTuple):
    """Normalised code points, and where they come from.

    Attributes:
        points: Ragged code points `[B, (N)]`, int32.
        place, after: The bytes at which each of them begins and ends, int32 `[N of all]`. Those
            that were reordered or composed share the bytes of their group.
    """

    points: "tf.RaggedTensor"
    place: Tensor
    after: Tensor


def nfc(points, place, after) -> Composed:
    """Returns the composed normal form of texts.

    Args:
        points: Ragged code points `[B, (N)]`, int32.
        place, after: The bytes at which each of them begins and ends, int32 `[N of all]`.
    """
    tables = _tables()
    flat, row = points.values, tf.cast(row_ids(points), tf.int32)
    plain = tf.reduce_all(tf.equal(tables.kinds(flat), 0))

    def changed():
        found, lengths = tables.decompositions.map(flat)
        others = (tf.repeat(values, lengths) for values in (row, place, after))
        return _composed(found, *others, tables)

    flat, row, place, after = tf.cond(plain, lambda: (flat, row, place, after), changed)
    lengths = tf.math.bincount(row, minlength=tf.cast(points.nrows(), tf.int32))
    ragged = tf.RaggedTensor.from_row_lengths(flat, tf.cast(lengths, tf.int64), validate=False)
    return Composed(ragged, place, after)


def code_points() -> dict[str, Any]:
    """Returns the classes by which another program computes the same with its own NFC.

    Each is a list of the first and the last code points of ranges: `"ordered"` marks; `"seconds"`
    of pairs that are composed; and `"apart"`, which stay where they are, although another version
    of Unicode would compose, decompose or move them.
    """
    seconds = {second for _, second in _pairs()} | members(KOREAN_SECONDS)
    return {
        "ordered": ranges_of(members(ORDERED)),
        "seconds": ranges_of(seconds),
        "apart": ranges_of(members(APART) | members(WHOLE)),
    }


def _composed(flat, row, place, after, tables):
    """Returns decomposed code points in canonical order and composed, with the other values."""
    order, second = tables.orders(flat), tables.seconds(flat)
    begins = _begins(row)
    group = tf.cumsum(tf.cast(begins | (tf.equal(order, 0) & tf.equal(second, 0)), tf.int32)) - 1
    count = tf.reduce_max(group) + 1
    place = tf.gather(tf.math.unsorted_segment_min(place, group, count), group)
    after = tf.gather(tf.math.unsorted_segment_max(after, group, count), group)
    # Marks are sorted by their order, each between two starters.
    block = latest(begins | tf.equal(order, 0))
    keys = tf.cast(block, tf.int64) * 256 + tf.cast(order, tf.int64)
    sorted_by = tf.argsort(keys, stable=True)
    flat, order = tf.gather(flat, sorted_by), tf.gather(order, sorted_by)
    values = [flat, order, row, place, after, tf.constant(True)]  # [N] each, but for the last
    shapes = [*[tf.TensorShape([None])] * 5, tf.TensorShape([])]
    *values, _ = tf.while_loop(
        lambda *state: state[-1],
        lambda *state: _round(*state[:-1], tables),
        values,
        shape_invariants=shapes,
    )
    return values[0], *values[2:]


def _round(flat, order, row, place, after, tables):
    """Composes each starter with the first mark or letter after it that it can be composed with."""
    begins = _begins(row)
    is_block = begins | tf.equal(order, 0)
    starter = shifted(latest(is_block), 1, 0)  # of the block before each code point, [N]
    fits = tf.equal(tf.gather(order, starter), 0) & ~begins
    is_next = tf.equal(starter, tf.range(tf.size(flat)) - 1)
    # A mark is blocked by one of the same order before it, and a starter by any.
    fits &= is_next | ((order > shifted(order, 1, 0)) & (order > 0))
    whole = tf.where(fits, tables.compose(tf.gather(flat, starter), flat), NONE)
    composes = whole != NONE
    places = tf.cast(tf.where(composes)[:, 0], tf.int32)  # in order, of the second code points
    firsts = tf.gather(starter, places)
    is_first = firsts != shifted(firsts, 1, NONE)
    places, firsts = tf.boolean_mask(places, is_first), tf.boolean_mask(firsts, is_first)
    flat = tf.tensor_scatter_nd_update(flat, firsts[:, None], tf.gather(whole, places))
    gone = tf.scatter_nd(places[:, None], tf.ones_like(places), tf.shape(flat))
    kept = [tf.boolean_mask(x, tf.equal(gone, 0)) for x in (flat, order, row, place, after)]
    return *kept, tf.size(places) > 0


def _begins(row):
    """Returns which code points are the first of their text, `[N]`."""
    return row != shifted(row, 1, NONE)


class _Tables(typing.NamedTuple):
    """Tables of code points.

    Attributes:
        decompositions: Map to their canonical decompositions, but for Korean syllables.
        orders: Their canonical combining classes; 0 for starters.
        seconds: 1 for those that may be the second of a pair that is composed.
        kinds: 0 for those that no normalisation changes, whatever their neighbours are.
        pairs: Composable pairs as sorted integers, `first * SHIFT + second`.
        wholes: What they are composed to.
    """

    decompositions: CodePointMap
    orders: CodePointTable
    seconds: CodePointTable
    kinds: CodePointTable
    pairs: np.ndarray
    wholes: np.ndarray

    def compose(self, first, second) -> Tensor:
        """Returns the composition of each pair of code points, or `NONE`, `[N]`."""
        pair = tf.cast(first, tf.int64) * SHIFT + tf.cast(second, tf.int64)
        pairs = tf.constant(self.pairs)
        number = tf.minimum(tf.searchsorted(pairs, pair), len(self.pairs) - 1)
        found = tf.gather(tf.constant(self.wholes), number)
        whole = tf.where(tf.equal(tf.gather(pairs, number), pair), found, NONE)
        lead, vowel, tail = first - LEAD, second - VOWEL, second - TAIL
        inner = (lead >= 0) & (lead < LEADS) & (vowel >= 0) & (vowel < VOWELS)
        whole = tf.where(inner, SYLLABLE + (lead * VOWELS + vowel) * TAILS, whole)
        open_ = (SYLLABLES.start <= first) & (first < SYLLABLES.stop)
        open_ &= tf.equal((first - SYLLABLE) % TAILS, 0) & (tail > 0) & (tail < TAILS)
        return tf.where(open_, first + tail, whole)


@functools.cache
def _tables():
    orders, seconds, kinds = (np.zeros(CODE_POINTS, np.int32) for _ in range(3))
    for point in members(ORDERED):
        orders[point] = unicodedata.combining(chr(point))
    changes = {
        point: tuple(map(ord, unicodedata.normalize("NFD", chr(point))))
        for point, _ in _decompositions()
    }
    pairs = {first * SHIFT + second: point for (first, second), point in _pairs().items()}
    seconds[[second for _, second in _pairs()]] = 1
    seconds[[*members(KOREAN_SECONDS)]] = 1
    kinds[list(changes)] = 1
    kinds = np.maximum(kinds, np.maximum(seconds, orders > 0)).astype(np.int32)
    keys = np.array(sorted(pairs), np.int64)
    wholes = np.array([pairs[key] for key in sorted(pairs)], np.int32)
    tables = (CodePointTable(values) for values in (orders, seconds, kinds))
    return _Tables(CodePointMap(changes), *tables, keys, wholes)


def _decompositions():
    """Yields code points with canonical decompositions, and the parts of these."""
    newer = members(WHOLE)
    for point in range(CODE_POINTS):
        parts = unicodedata.decomposition(chr(point))
        if parts and not parts.startswith("<") and point not in newer:
            yield point, tuple(int(part, 16) for part in parts.split())


@functools.cache
def _pairs():
    """The code point that each pair of code points is composed to, without Korean letters."""
    return {
        parts: point
        for point, parts in _decompositions()
        if len(parts) == 2 and unicodedata.normalize("NFC", chr(point)) == chr(point)
    }
