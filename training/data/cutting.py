"""Texts that are longer than a model reads: their beginnings."""

import tensorflow as tf


def cut_texts(texts, max_length):
    """Returns texts of which none has more than `max_length` tokens; each keeps its end.

    Args:
        texts: Ragged token ids `[B, (T)]`.
        max_length: At least 1.
    """
    beginnings = texts[:, : max_length - 1]
    longer = tf.cast(texts.row_lengths() > beginnings.row_lengths(), tf.int64)
    ends = tf.gather(texts.flat_values, texts.row_limits() - 1)  # a text has one at least
    return tf.concat([beginnings, tf.RaggedTensor.from_row_lengths(ends, longer)], axis=1)
