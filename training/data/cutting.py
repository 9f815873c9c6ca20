"""Texts that are longer than a model reads: their beginnings."""

import tensorflow as tf


def cut_texts(texts, max_length):
    """Returns texts of which none has more than `max_length` tokens; each keeps its end.

    Args:
        texts: Ragged token ids `[B, (T)]`.
        max_length: At least 1.
    """
    beginnings = texts[:, : max_length - 1]
    longer = texts.row_lengths() > beginnings.row_lengths()
    ends = tf.gather(texts.flat_values, tf.boolean_mask(texts.row_limits() - 1, longer))
    ends = tf.RaggedTensor.from_row_lengths(ends, tf.cast(longer, tf.int64))
    return tf.concat([beginnings, ends], axis=1)
