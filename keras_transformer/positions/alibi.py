"""ALiBi, attention with linear biases: scores decrease with the distance of the key."""

from __future__ import annotations

import math

from keras_transformer.lazy_keras import keras, np, ops
from keras_transformer.positions.position import Position, distances
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class Alibi(Position):
    """Subtracts the distance of query and key, times a slope for each head, from every score.

    `softmax(q_i K^T / sqrt(d_k) - m_h |i - j|)`. It has no weights and no maximum length.

    Differs from the original, which is for decoders only: in an encoder, the distances of keys
    before and after the query count alike. The memory of a reversed source is therefore the
    reversed memory, and as cross-attention ignores the order of the memory, a `Transformer` cannot
    distinguish a source from its reverse. Choose another position encoding if word order matters.

    Reference: Press et al. (2022), "Train Short, Test Long: Attention with Linear Biases Enables
        Input Length Extrapolation", section 3.
    """

    kind = "alibi"
    is_relative = by_row = True

    def bias(self, attention: keras.Layer, heads: Tensor, queries: Tensor, keys: Tensor) -> Tensor:  # noqa: D102
        queries = attention.kernels.positions(queries, heads)
        # float32 represents distances up to 16,777,216 exactly, float16 only up to 2,048.
        queries, keys = ops.cast(queries, "float32"), ops.cast(keys, "float32")
        far = ops.abs(distances(queries, keys))  # [T, S]
        slopes = np.reshape(alibi_slopes(attention.num_heads), (-1, 1, 1)).astype(np.float32)
        return far * -slopes  # [H, T, S]


def alibi_slopes(num_heads) -> np.ndarray:
    """Returns the slope of each head, an array `[H]`.

    The slopes are `2^(-8 / H), 2^(-16 / H), ..., 2^-8` if the number of heads H is a power of 2.
    Otherwise, as in the authors' code, they are the slopes for the next lower power of 2, followed
    by the first, the third and so on of the slopes for twice that power.

    Args:
        num_heads: Number of heads.
    """
    power = 2 ** int(math.log2(num_heads))
    between = _geometric(2 * power)[::2]
    return np.concatenate([_geometric(power), between[: num_heads - power]])  # [H]


def _geometric(count):
    return 2.0 ** (-8 * np.arange(1, count + 1) / count)
