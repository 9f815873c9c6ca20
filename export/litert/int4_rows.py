"""Kernels of a search step that read rows of matrices in int4."""

import numpy as np
import tensorflow as tf

from keras_transformer.export.litert.int4 import in_int4
from keras_transformer.export.litert.kernels import Int8Rows, stored_codes, stored_scales


class Int4Rows(Int8Rows):
    """Kernels that read rows of matrices in int4, with one scale for each row.

    They read the same bytes as the product that computes the logits: see `store_in_int4`. Not every
    version of LiteRT gathers rows of int4, so the graph gathers bytes and computes both halves of
    each. Matrices with an odd number of columns are read in int8.

    Args:
        tables, kernel, bias, code_of: See `Int8Rows`.
    """

    def _stored(self, table, code=None):
        if table.shape[1] % 2:
            return super()._stored(table, code)
        packed, scales = in_int4(table)
        codes = stored_codes(lambda: packed.view(np.int8), packed.shape, code)
        scales_at = stored_scales(scales)
        return lambda tokens: (_halves(tf.gather(codes(), tokens)), scales_at(tokens))


def _halves(packed):
    """Returns the numbers `[..., D]`, int8, in bytes `[..., D / 2]`, int8."""
    packed = tf.cast(packed, tf.float32)  # -128 to 127
    upper = tf.floor(packed / 16)
    lower = packed - 16 * upper  # 0 to 15
    lower -= 16 * tf.floor(lower / 8)  # -8 to 7
    numbers = tf.stack([lower, upper], axis=-1)  # [..., D / 2, 2]
    *shape, count = packed.shape
    return tf.cast(tf.reshape(numbers, [*shape, 2 * count]), tf.int8)
