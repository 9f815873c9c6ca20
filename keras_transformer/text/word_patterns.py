r"""Words of GPT-2's tokenizer in the graph, without a regular expression.

The pattern `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+` looks
ahead, which TensorFlow's regular expressions cannot. Whether a code point begins a word depends on
the classes of its neighbours and on contractions, such as `'ve`, that end before it.
"""

import functools

import numpy as np
import tensorflow as tf

from keras_transformer.tensors import Tensor
from keras_transformer.text.code_points import CODE_POINTS, PAGE
from keras_transformer.text.unicode_ranges import LETTERS, NUMBERS, SPACES

SPACE, LETTER, NUMBER, OTHER, EDGE = range(5)  # classes; the edge of a text is none of its own
CLASSES = {SPACE: SPACES, LETTER: LETTERS, NUMBER: NUMBERS}
BLANK, APOSTROPHE = ord(" "), ord("'")
ENDINGS = ("s", "t", "re", "ve", "m", "ll", "d")  # of contractions
NO_POINT = -1  # stands between texts


def word_starts(points) -> Tensor:
    """Returns which code points begin a word.

    Args:
        points: Ragged code points `[B, (N)]`, int32.

    Returns:
        Ragged booleans `[B, (N)]`.
    """
    column = tf.fill([points.nrows(), 1], NO_POINT)
    apart = tf.concat([points, tf.RaggedTensor.from_tensor(column)], axis=1)  # [B, (N + 1)]
    flat = apart.values
    starts = _starts(flat, _classes(flat))
    return points.with_values(tf.boolean_mask(starts, flat != NO_POINT))


def _starts(flat, kind):
    """Returns whether each code point begins a word; `NO_POINT` ends each text."""
    before, kind_before = _shift(flat, 1, NO_POINT), _shift(kind, 1, EDGE)
    kind_after = _shift(kind, -1, EDGE)
    length = _contractions(flat, kind_before, before)  # letters of the contraction that begins here
    one, two = tf.equal(length, 1), tf.equal(length, 2)
    inside = _shift(one | two, 1, False) | _shift(two, 2, False)
    follows = _shift(one, 2, False) | _shift(two, 3, False)  # the end of a contraction
    # A blank before letters, numbers or others belongs to their word.
    begins = follows | ((kind != kind_before) & (before != BLANK))
    # The last of several white spaces before a word is a word by itself, or belongs to that word.
    last_space = (kind_after != SPACE) & (kind_after != EDGE)
    space = (kind_before != SPACE) | last_space
    return tf.where(tf.equal(kind, SPACE), space, begins & ~inside)


def _contractions(flat, kind_before, before):
    """The number of letters of the contraction that begins at each code point; 0 for none."""
    free = tf.equal(flat, APOSTROPHE) & (kind_before != OTHER) & (before != BLANK)
    letters = [_shift(flat, -distance, NO_POINT) for distance in (1, 2)]
    length = tf.zeros_like(flat)
    for ending in ENDINGS:
        fits = free
        for letter, points in zip(ending, letters, strict=False):
            fits &= tf.equal(points, ord(letter))
        length = tf.where(fits, len(ending), length)
    return length


def _shift(values, distance, filling):
    """Values moved to later places, or to earlier ones if `distance` is negative."""
    room = tf.fill([abs(distance)], tf.constant(filling, values.dtype))
    if distance > 0:
        return tf.concat([room, values], 0)[: tf.size(values)]
    return tf.concat([values, room], 0)[-distance:]


def _classes(flat):
    """The class of each code point."""
    page_of, entries = _table()
    points = tf.maximum(flat, 0)
    page = tf.gather(tf.constant(page_of), points // PAGE)
    kind = tf.gather(tf.constant(entries), page * PAGE + points % PAGE)
    return tf.where(tf.equal(flat, NO_POINT), EDGE, kind)


@functools.cache
def _table():
    """The page of each 256 code points, and the classes on all different pages."""
    kinds = np.full(CODE_POINTS, OTHER, np.int32)
    for kind, ranges in CLASSES.items():
        for first, last in ranges:
            kinds[first : last + 1] = kind
    pages, page_of = np.unique(kinds.reshape(-1, PAGE), axis=0, return_inverse=True)
    return page_of.reshape(-1).astype(np.int32), pages.reshape(-1)
