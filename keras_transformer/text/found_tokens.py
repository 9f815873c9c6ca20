"""Tokens that are found in texts before words are split, in the graph."""

import string

import tensorflow as tf
import tensorflow_text

from keras_transformer.tensors import Tensor
from keras_transformer.text.code_points import decode_with_places
from keras_transformer.text.white_space import SPACE

ROW = 2**32  # more than the bytes of a text


class FoundTokens:
    """Tokens such as runs of spaces; the leftmost one, and then the longest one, is found first.

    Args:
        ids: Dictionary from the tokens to their ids.
    """

    def __init__(self, ids):
        self.ids = dict(sorted(ids.items(), key=lambda item: -len(item[0])))

    def split(self, strings) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Returns the tokens and the texts between them, ragged `[B, (C)]`, and their offsets.

        Args:
            strings: UTF-8 strings, `[B]`.
        """
        pattern = "|".join(map(_escaped, self.ids))
        # The operation takes a zero byte for the end of a text.
        whole = tf.strings.regex_replace(strings, r"\x00", "\x01")
        _, begins, ends = tensorflow_text.regex_split_with_offsets(
            whole, f"({pattern})", f"({pattern})"
        )
        begins, ends = tf.cast(begins, tf.int32), tf.cast(ends, tf.int32)
        texts = tf.gather(strings, begins.value_rowids())
        parts = tf.strings.substr(texts, begins.values, ends.values - begins.values)
        return begins.with_values(parts), begins

    def look_up(self, texts) -> Tensor:
        """Returns the id of each text that is a token, int32 `[N]`; -1 for the others."""
        equal = tf.equal(tf.expand_dims(texts, 1), tf.constant(list(self.ids)))  # [N, tokens]
        ids = tf.constant(list(self.ids.values()), tf.int32)
        return tf.reduce_max(tf.where(equal, ids, -1), axis=1)


def words_before_normalization(strings, normal, row, begins) -> tuple[Tensor, Tensor]:
    """Returns where words begin and end in texts before a normalisation that keeps white space.

    Words are what white space separates.

    Args:
        strings: The texts, `[B]`.
        normal: The normalised texts, `[B]`, with equally many characters of white space.
        row: Row of each word, `[N]`.
        begins: The byte of the normalised text at which each word begins, `[N]`.

    Returns:
        Two int32 `[N]`.
    """
    first, after, rows = _spaces(strings)
    places, _, of_place = _spaces(normal)
    row = tf.cast(row, tf.int64)
    counts = tf.math.bincount(tf.cast(rows, tf.int32), minlength=tf.size(strings), dtype=tf.int64)
    starts = tf.cumsum(counts, exclusive=True)  # spaces in all texts before, [B]
    keys = of_place * ROW + tf.cast(places, tf.int64)
    number = tf.searchsorted(keys, row * ROW + tf.cast(begins, tf.int64), out_type=tf.int64)
    number -= tf.gather(starts, row)  # spaces before the word, [N]
    place = tf.gather(starts, row) + number
    lengths = tf.gather(tf.strings.length(strings), row)
    after, first = (tf.concat([[0], after], 0), tf.concat([first, [0]], 0))
    begin = tf.where(tf.equal(number, 0), 0, tf.gather(after, place))
    end = tf.where(number < tf.gather(counts, row), tf.gather(first, place), lengths)
    return begin, end


def _spaces(strings):
    """Returns the bytes at which characters of white space begin and end, and their rows."""
    points, begins, ends = decode_with_places(strings)
    characters = tf.strings.unicode_encode(tf.expand_dims(points.values, 1), "UTF-8")
    is_space = tf.strings.regex_full_match(characters, SPACE)
    return tuple(tf.boolean_mask(x, is_space) for x in (begins, ends, points.value_rowids()))


def _escaped(token):
    return "".join(f"\\{x}" if x in string.punctuation else x for x in token)
