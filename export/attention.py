"""Attention whose mask is a term of the scores, for graphs that run in one pass."""

import tensorflow as tf

from keras_transformer.layers.dot_product import FORBIDDEN, by_group
from keras_transformer.layers.kernels import similarity
from keras_transformer.tensors import Tensor


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    bias: Tensor | None,
    scale: float,
) -> Tensor:
    """Returns `softmax(scale Q K^T + bias) V` `[B, H, T, K]`: see `Kernels.attend`.

    A mask of keys is `[B, 1, 1, S]`, but selecting by it makes two more passes over all scores
    `[B, H, T, S]`, one before and one after the softmax, and XNNPACK computes neither. Here the
    mask becomes a term of the scores: the softmax gives a masked key a weight of exactly 0. The
    result of a query that may attend to nothing is multiplied by 0.
    """
    scores = by_group(similarity, query if scale == 1 else query * scale, key)  # [B, H, T, S]
    if bias is not None:
        scores += bias
    if attention_mask is None:
        return by_group(tf.matmul, tf.nn.softmax(scores), value)  # [B, H, T, K]
    # Not a product with `FORBIDDEN`: in float16, as on GPUs of phones, that is minus infinity.
    mask = tf.where(attention_mask, 0.0, FORBIDDEN)  # [B, 1, T, S]; B and T may be 1
    weights = tf.nn.softmax(scores + mask)  # [B, H, T, S]
    some = tf.cast(
        tf.reduce_any(attention_mask, axis=-1, keepdims=True), value.dtype
    )  # [B, 1, T, 1]
    return by_group(tf.matmul, weights, value) * some
