"""Words of strings, which white space separates, in the graph."""

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor
from keras_transformer.text.code_points import decode_with_places
from keras_transformer.text.ragged_rows import row_ids

SPACE = r"[\s\pZ\x0b\x{85}]"


def words_of(strings) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the words of strings, from the first string to the last.

    Args:
        strings: UTF-8 strings, `[B]`. Invalid UTF-8 is read as U+FFFD.

    Returns:
        The index of each word's string, int64 `[W]`, and the bytes at which the word begins and
        ends (exclusive), int32 `[W]`.
    """
    points, begins, ends = decode_with_places(strings)
    characters = tf.strings.unicode_encode(tf.expand_dims(points.values, 1), "UTF-8")
    inside = ~tf.strings.regex_full_match(characters, SPACE)
    row, place = row_ids(points), tf.range(tf.size(inside))
    row, place = tf.boolean_mask(row, inside), tf.boolean_mask(place, inside)
    same = tf.equal(place[1:], place[:-1] + 1) & tf.equal(row[1:], row[:-1])
    is_begin = tf.concat([tf.ones_like(inside)[:1], ~same], 0)[: tf.size(place)]
    word = tf.cumsum(tf.cast(is_begin, tf.int32)) - 1
    count = tf.reduce_sum(tf.cast(is_begin, tf.int32))
    begins = tf.math.unsorted_segment_min(tf.gather(begins, place), word, count)  # [W]
    ends = tf.math.unsorted_segment_max(tf.gather(ends, place), word, count)
    row = tf.boolean_mask(row, is_begin)  # [W]
    return row, begins, ends
