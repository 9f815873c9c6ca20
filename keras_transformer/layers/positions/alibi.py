"""Attention with linear biases: the farther a key, the lower its score."""

import math

import keras
import numpy as np
from keras import ops

from keras_transformer.layers.positions.position import AttentionPosition, distances


@keras.saving.register_keras_serializable(package="keras_transformer")
class Alibi(AttentionPosition):
    """Subtracts from every score the distance of query and key, times the slope of the head.

    `softmax(q_i K^T / sqrt(d_k) - m_h |i - j|)`. It has no weights and no longest sentence.

    Differs from its paper, which has decoders alone: in an encoder keys before and after the query
    are equally far. So an encoder turns a reversed sentence into the reversed memory, and attention
    to a memory knows no order: to a whole `Transformer` a source and its reverse are the same.
    Where the order of words decides, take another kind.

    Reference: Press et al. (2022), "Train Short, Test Long: Attention with Linear Biases Enables
        Input Length Extrapolation", section 3.
    """

    kind = "alibi"

    def bias(self, attention, heads, queries, keys):  # noqa: D102
        # In float32 every distance below 16,777,216 is exact; in float16 those below 2,048 are.
        queries, keys = ops.cast(queries, "float32"), ops.cast(keys, "float32")
        far = ops.abs(distances(queries, keys))  # [T, S]
        slopes = np.reshape(alibi_slopes(attention.num_heads), (-1, 1, 1)).astype(np.float32)
        return far * -slopes  # [H, T, S]


def alibi_slopes(num_heads):
    """Returns the slope of every head, an array `[H]`.

    `2^(-8 / H), 2^(-16 / H), ..., 2^-8` where the number of heads H is a power of 2. Otherwise, as
    in the authors' code, those of the next lower power of 2, and then the first, the third and so
    on of twice that power.

    Args:
        num_heads: Number of heads.
    """
    power = 2 ** int(math.log2(num_heads))
    between = _geometric(2 * power)[::2]
    return np.concatenate([_geometric(power), between[: num_heads - power]])  # [H]


def _geometric(count):
    return 2.0 ** (-8 * np.arange(1, count + 1) / count)
