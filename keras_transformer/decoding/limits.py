"""Maximum lengths of outputs as multiples of the lengths of their sources."""

from typing import Any

import numpy as np

from keras_transformer.lazy_tensorflow import tf


def limits_by_ratio(ratio, longest) -> np.ndarray:
    """Returns the maximum lengths of outputs by the lengths of their sources, from 0, int32.

    A limit is the product, rounded up; all longer sources have the last one, which is `longest`.
    The products are rounded once, in float32 as in Marian.

    Args:
        ratio: Maximum length of an output over the length of its source.
        longest: Maximum length without it, a Python integer.
    """
    ratio = np.float32(ratio)
    count = 2 + int(longest / ratio)
    table = np.ceil(ratio * np.arange(count, dtype=np.float32))
    return np.clip(table, 1, longest).astype(np.int32)


def limits_of(lengths, ratio, longest) -> Any:
    """Returns the maximum lengths of outputs, integers or int32 like `lengths`.

    A table holds them, so that a quantised graph computes with integers only.

    Args:
        lengths: Numbers of tokens of the sources, ends included: an integer, an array or a tensor.
        ratio, longest: See `limits_by_ratio`.
    """
    table = limits_by_ratio(ratio, longest)
    if tf.is_tensor(lengths):
        return tf.gather(tf.constant(table), tf.minimum(lengths, len(table) - 1))
    return table[np.minimum(lengths, len(table) - 1)]
