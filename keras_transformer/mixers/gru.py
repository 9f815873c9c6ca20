"""The gated recurrent unit."""

from __future__ import annotations

from keras_transformer.lazy_keras import ops
from keras_transformer.mixers.recurrent import Recurrent
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class GRU(Recurrent):
    """Gated recurrent unit, in both directions unless a layer is causal.

    With `x = x_t W + b` and `r = h_(t-1) R + b'`, each split into three parts, the gates are
    `z = sigmoid(x_z + r_z)` and `s = sigmoid(x_s + r_s)`, and the output, which is the state, is
    `h_t = z * h_(t-1) + (1 - z) * tanh(x_n + s * r_n)`. Weights are in the order of
    `keras.layers.GRU`.

    Args:
        **options: See `help(GRU)`.

    Example:
        >>> import keras
        >>> from keras_transformer.layers import GRU, Mixing
        >>> Mixing(GRU())(keras.random.normal((2, 5, 16))).shape
        TensorShape([2, 5, 16])

    Differs from the paper: the gate `s` is applied after the product with R, as in cuDNN and Keras.

    Reference: Cho et al. (2014), "Learning Phrase Representations using RNN Encoder-Decoder for
        Statistical Machine Translation".
    """

    kind = "gru"
    about = "gated recurrent units, in both directions in an encoder (Cho et al., 2014)"
    gates = 3
    has_input_bias = True

    def update(self, x: Tensor, r: Tensor, before: tuple) -> tuple[tuple, tuple]:  # noqa: D102
        x_z, x_s, x_n = ops.split(x, 3, axis=-1)
        r_z, r_s, r_n = ops.split(r, 3, axis=-1)
        z, s = ops.sigmoid(x_z + r_z), ops.sigmoid(x_s + r_s)
        new = ops.tanh(x_n + s * r_n)
        return (z * before[0] + (1 - z) * new,), (z, s, new, r_n)

    def changes(self, upstream: tuple, before: tuple, kept: tuple) -> tuple[Tensor, Tensor, tuple]:  # noqa: D102
        (z, s, new, r_n), (h,) = kept, upstream
        by_new = h * (1 - z) * (1 - new * new)
        by_z = h * (before[0] - new) * z * (1 - z)
        by_s = by_new * r_n * s * (1 - s)
        by_x = ops.concatenate([by_z, by_s, by_new], axis=-1)
        by_r = ops.concatenate([by_z, by_s, by_new * s], axis=-1)
        return by_x, by_r, (h * z,)
