"""Scaled dot-product attention (section 3.2.1, Eq. 1): of one tensor of keys, or of several."""

import math

import keras
from keras import ops

from keras_transformer.layers.kernels import similarity

# Added nowhere, put in place of a forbidden score: far below any real one, and finite.
FORBIDDEN = -1e9


def dot_product_attention(query, key, value, allowed=None, dropout=None, similarity=similarity):
    """Scaled dot-product attention, `softmax(Q K^T / sqrt(d_k)) V`.

    The softmax is taken in float32 at least, whatever the dtype of the arguments.

    Args:
        query: `[B, H, T, K]`.
        key: `[B, H, S, K]`.
        value: `[B, H, S, K]`; the last axis may have another size than that of `key`.
        allowed: Boolean, broadcastable to `[B, H, T, S]`; `True` where a query may attend to a
            key. A query that may attend to nothing gets zeros.
        dropout: Function applied to the weights, for example a `Dropout`.
        similarity: Function of queries and keys to the products of each with each.

    Returns:
        The attended values `[B, H, T, K]` and the weights `[B, H, T, S]` they were made with.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import dot_product_attention
        >>> query = np.zeros((1, 1, 1, 2), "float32")  # [B, H, T, K]
        >>> key = value = np.eye(2, dtype="float32")[None, None]  # [B, H, S, K]
        >>> attended, weights = dot_product_attention(query, key, value)
        >>> [round(float(weight), 3) for weight in weights[0, 0, 0]]
        [0.5, 0.5]

    Reference: Vaswani et al. (2017), section 3.2.1, Eq. 1.
    """
    query = query * (1 / math.sqrt(query.shape[-1]))  # before the product: float16 range
    scores = similarity(query, key)  # [B, H, T, S]
    if keras.backend.standardize_dtype(scores.dtype) in ("float16", "bfloat16"):
        scores = ops.cast(scores, "float32")
    if allowed is not None:
        scores = ops.where(allowed, scores, FORBIDDEN)
    weights = _softmax(scores)  # [B, H, T, S]
    if allowed is not None:
        weights = ops.where(allowed, weights, 0.0)  # rows in which nothing is allowed
    weights = ops.cast(weights, value.dtype)
    dropped = weights if dropout is None else dropout(weights)
    return ops.einsum("BHTS,BHSK->BHTK", dropped, value), weights  # [B, H, T, K]


def attention_over_parts(query, keys, values, allowed, similarity=similarity):
    """Scaled dot-product attention to keys and values in several tensors, which are not joined.

    The numerators and the denominator of the softmax are sums over the parts, relative to the
    largest score of all (Milakov and Gimelshein, 2018, "Online normalizer calculation for
    softmax"). To copy the parts into one would cost more than to attend to them.

    Args:
        query: `[B, H, T, K]`.
        keys: List of `[B, H, S, K]`, of any known S each.
        values: List of `[B, H, S, K]`.
        allowed: Boolean, broadcastable to `[B, H, T, sum of all S]`: `True` where a query may
            attend to a key; somewhere in every row.
        similarity: Function of queries and keys to the products of each with each.

    Returns:
        The attended values `[B, H, T, K]`.

    Reference: Vaswani et al. (2017), section 3.2.1, Eq. 1.
    """
    query = query * (1 / math.sqrt(query.shape[-1]))
    scores, first = [], 0
    for key in keys:
        part = ops.cast(similarity(query, key), "float32")
        here = allowed[:, :, :, first : first + key.shape[2]]
        scores.append(ops.where(here, part, FORBIDDEN))  # [B, H, T, S]
        first += key.shape[2]
    highest = ops.max(scores[0], axis=-1, keepdims=True)  # [B, H, T, 1]
    for score in scores[1:]:
        highest = ops.maximum(highest, ops.max(score, axis=-1, keepdims=True))
    weights = [ops.exp(score - highest) for score in scores]  # [B, H, T, S]
    total = sum(ops.sum(weight, axis=-1, keepdims=True) for weight in weights)  # [B, H, T, 1]
    products = [
        ops.einsum("BHTS,BHSK->BHTK", ops.cast(weight, value.dtype), value)
        for weight, value in zip(weights, values, strict=True)
    ]
    return sum(products) / ops.cast(total, query.dtype)


def _softmax(scores):
    # A single key is no mistake (an empty sentence is its end alone), but Keras warns of one.
    return ops.ones_like(scores) if scores.shape[-1] == 1 else ops.softmax(scores, axis=-1)
