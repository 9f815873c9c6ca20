"""A step of the search out of the operations that LiteRT does fastest."""

import numpy as np
import tensorflow as tf
from keras import ops

from keras_transformer.export.litert.compact import codes_of_rows, scales_of_rows
from keras_transformer.layers.kernels import similarity


def write(cache, position, index):
    """Writes a position into the cache by an update of a slice, which is a plain copy.

    A select reads a condition for every element. TensorFlow itself has no kernel for this on the
    processor: a model with it cannot decode there.
    """
    return ops.slice_update(cache, (0, 0, index, 0), position)


def single_similarity(query, key):
    """Scores of a single query as a product and a sum.

    A matrix product would first bring every matrix of keys into another layout for one row.
    """
    if query.shape[2] != 1:
        return similarity(query, key)
    return ops.expand_dims(ops.sum(query * key, axis=-1), axis=2)  # [B, H, T=1, S]


class Int8LookUp:
    """Looks up rows of tables in int8, one scale per row.

    The converter quantises a table once for looking up and once for the logits. With the very
    numbers that it computes for the logits, it stores one.

    Args:
        tables: The tables, variables `[V, D]`.
    """

    def __init__(self, tables):
        self._rows = {table.path: _in_int8(table.numpy()) for table in tables}

    def __call__(self, table, tokens):
        """Returns rows of a table, float32 `[B, T, D]`."""
        codes, scales = self._rows[table.path]
        scale = tf.bitcast(tf.gather(scales, tokens), tf.float32)
        return tf.cast(tf.gather(codes, tokens), tf.float32) * scale


def _in_int8(table):
    """Codes `[V, D]`, int8, and scales `[V, 1]`, float32 that are dressed up as int32: variables.

    The converter would also round the scales to 8 bits. Constants would be in the graph of every
    loop, and of each graph there are several copies while a file is made.
    """
    scales = scales_of_rows(table)[:, None]  # [V, 1]
    codes = codes_of_rows(table, scales[:, 0])  # [V, D]
    numbers = codes, scales.astype(np.float32).view(np.int32)
    return tuple(tf.Variable(values, trainable=False) for values in numbers)
