"""Scaled dot-product attention (section 3.2.1, Eq. 1), and attention by other scores."""

from collections.abc import Callable

from keras import ops

from keras_transformer.gradients import custom_gradient
from keras_transformer.layers.kernels import similarity
from keras_transformer.positions.relative import for_every_position
from keras_transformer.scores.score import at_least_float32, scaled
from keras_transformer.tensors import Tensor

# Replaces the scores of masked keys. It is far below any real score, and finite.
FORBIDDEN = -1e9


def dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
    similarity: Callable[[Tensor, Tensor], Tensor] = similarity,
) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention, `softmax(Q K^T / sqrt(d_k)) V`.

    The softmax is computed in float32 or wider, whatever the dtype of the arguments.

    Args:
        query: `[B, H, T, K]`.
        key: `[B, H, S, K]`.
        value: `[B, H, S, K]`. Its last axis may differ from that of `key`.
        attention_mask: Boolean, broadcastable to `[B, H, T, S]`; `True` where a query may attend to
            a key. The result is zero for a query that may attend to nothing.
        dropout: Function applied to the weights, for example a `Dropout` layer.
        similarity: Function of queries and keys that returns all their dot products,
            `[B, H, T, S]`.

    Returns:
        The attended values `[B, H, T, K]`, and the attention weights `[B, H, T, S]` before dropout.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.layers import dot_product_attention
        >>> query = np.zeros((1, 1, 1, 2), "float32")  # [B, H, T, K]
        >>> key = value = np.eye(2, dtype="float32")[None, None]  # [B, H, S, K]
        >>> attended, weights = dot_product_attention(query, key, value)
        >>> [round(float(weight), 3) for weight in weights[0, 0, 0]]
        [0.5, 0.5]

    Reference: Vaswani et al. (2017), section 3.2.1, Eq. 1.
    """
    return attend_with_weights(similarity(scaled(query), key), value, attention_mask, dropout)


def attend(
    scores, value, attention_mask=None, dropout=None, bias=None, pairs=None, training=False
) -> Tensor:
    """Returns `softmax(scores + bias) (V + pairs)`; see `dot_product_attention`.

    Args:
        scores: `[B, H, T, S]`, of any floating dtype.
        value: `[B, G, S, K]`; H / G consecutive heads share the values of a group.
        attention_mask: Boolean, broadcastable to `[B, H, T, S]`.
        dropout: Function applied to the weights.
        bias: Added to the scores: floating, broadcastable to `[B, H, T, S]`. `None`: nothing.
        pairs: Added to the values, one vector for each pair of query and key; see
            `for_every_position`. `None`: nothing.
        training: Whether to compute the softmax with the closed form of its gradient.

    Returns:
        The attended values `[B, H, T, K]`.
    """
    weights_of = _trained_weights if training else _weights
    weights = weights_of(scores, value.dtype, attention_mask, bias)  # [B, H, T, S]
    return _attended(weights if dropout is None else dropout(weights), value, pairs)


def attend_with_weights(
    scores, value, attention_mask=None, dropout=None, bias=None, pairs=None
) -> tuple[Tensor, Tensor]:
    """Returns the result of `attend`, and the weights before dropout, `[B, H, T, S]`."""
    weights = _weights(scores, value.dtype, attention_mask, bias)  # [B, H, T, S]
    return _attended(weights if dropout is None else dropout(weights), value, pairs), weights


def _weights(scores, dtype, attention_mask, bias):
    scores = _biased(at_least_float32(scores), bias)
    if attention_mask is not None:
        scores = ops.where(attention_mask, scores, FORBIDDEN)
    weights = _softmax(scores)  # [B, H, T, S]
    if attention_mask is not None:
        weights = ops.where(attention_mask, weights, 0.0)  # for rows in which nothing is allowed
    return ops.cast(weights, dtype)


def _trained_weights(scores, dtype, attention_mask, bias):
    """Returns the same as `_weights`, faster in training.

    The mask is a term of the scores, because selecting by a mask of keys is slow. With the weights
    `w` and the gradient `g` with respect to them, the gradient with respect to the scores is

        w * (g - sum over keys of w * g)

    It is 0 wherever `w` is, so that neither mask is needed for it. Only `w`, in the dtype of the
    layer, is kept for the gradient.
    """
    scores = _biased(at_least_float32(scores), bias)
    some = ops.ones((1, 1, 1, 1), scores.dtype)
    if attention_mask is not None:
        scores = scores + ops.cast(ops.where(attention_mask, 0.0, FORBIDDEN), scores.dtype)
        some = ops.cast(
            ops.any(attention_mask, axis=-1, keepdims=True), scores.dtype
        )  # [B, 1, T, 1]

    @custom_gradient
    def softmax(scores, some):  # an argument, because JAX allows no closure over its arrays here
        weights = _softmax(scores)  # [B, H, T, S]
        if attention_mask is not None:
            weights = weights * some  # for rows in which nothing is allowed
        weights = ops.cast(weights, dtype)

        def gradient(upstream):
            w, g = (ops.cast(tensor, scores.dtype) for tensor in (weights, upstream))
            weighted = w * g
            return weighted - w * ops.sum(weighted, axis=-1, keepdims=True), ops.zeros_like(some)

        return weights, gradient

    return softmax(scores, some)


def _attended(weights, value, pairs):
    heads = by_group(_weighted_sum, weights, value)  # [B, H, T, K]
    return heads if pairs is None else heads + _sum(weights, pairs)


def _weighted_sum(weights, value):
    return ops.einsum("BHTS,BHSK->BHTK", weights, value)


def by_group(product: Callable[[Tensor, Tensor], Tensor], x: Tensor, shared: Tensor) -> Tensor:
    """Returns a product of heads with the key or value heads that groups of heads share.

    Args:
        product: Function of `[B, G, M, X]` and `shared` that returns `[B, G, M, Y]`.
        x: `[B, H, T, X]`.
        shared: `[B, G, S, K]`; H / G consecutive heads are a group, and G may be H.

    Returns:
        `[B, H, T, Y]`.

    Reference: Ainslie et al. (2023), "GQA: Training Generalized Multi-Query Transformer Models
        from Multi-Head Checkpoints", section 2.2.
    """
    groups, heads = shared.shape[1], x.shape[1]
    if groups == heads:
        return product(x, shared)
    batch, _, length, size = ops.shape(x)
    grouped = ops.reshape(x, (batch, groups, heads // groups * length, size))  # [B, G, H/G * T, X]
    products = product(grouped, shared)  # [B, G, H/G * T, Y]
    return ops.reshape(products, (batch, heads, length, ops.shape(products)[-1]))


def attend_to_parts(scores, values, attention_mask, bias=None, pairs=None) -> Tensor:
    """Returns `softmax(scores + bias) (V + pairs)` for scores and values in several parts.

    The numerators and the denominator of the softmax are summed over the parts, relative to the
    largest score of all (Milakov and Gimelshein, 2018, "Online normalizer calculation for
    softmax"). Concatenating the parts would cost more than attending to them.

    Args:
        scores: List of `[B, H, T, S]`; each part has its own S, which may be 0 in all but the last
            one.
        values: List of `[B, G, S, K]`; see `attend`.
        attention_mask: Boolean, broadcastable to `[B, H, T, sum of all S]`: `True` where a query
            may attend to a key. Every query must have such a key.
        bias: Floating, `[B, H, T, sum of all S]`; T may be 1 and B may be missing. `None`: nothing.
        pairs: Added to the values, one vector for each key, `[1, sum of all S, K]`; see
            `for_every_position`. `None`: nothing.

    Returns:
        The attended values `[B, H, T, K]`.

    Reference: Vaswani et al. (2017), section 3.2.1, Eq. 1.
    """
    masked, first = [], 0
    for score in scores:
        here = slice(first, first + ops.shape(score)[-1])
        score = _biased(ops.cast(score, "float32"), None if bias is None else bias[..., here])
        masked.append(ops.where(attention_mask[:, :, :, here], score, FORBIDDEN))  # [B, H, T, S]
        first = here.stop
    highest = ops.max(masked[-1], axis=-1, keepdims=True)  # [B, H, T, 1]
    for score in masked[:-1]:
        # An initial value only where it is needed: a part may be empty.
        initial = None if score.shape[-1] else FORBIDDEN
        highest = ops.maximum(highest, ops.max(score, axis=-1, keepdims=True, initial=initial))
    weights = [ops.exp(score - highest) for score in masked]  # [B, H, T, S]
    total = sum(ops.sum(weight, axis=-1, keepdims=True) for weight in weights)  # [B, H, T, 1]
    products = [
        by_group(_weighted_sum, ops.cast(weight, value.dtype), value)
        for weight, value in zip(weights, values, strict=True)
    ]
    if pairs is not None:
        joined = ops.cast(ops.concatenate(weights, axis=-1), values[0].dtype)
        products.append(_sum(joined, pairs))  # [B, H, T, K]
    return sum(products) / ops.cast(total, values[0].dtype)


def _sum(weights, pairs):
    """Returns the weighted sum of the pairs' vectors for each query, `[B, H, T, K]`."""
    return for_every_position(ops.matmul, weights, ops.cast(pairs, weights.dtype))


def _biased(scores, bias):
    return scores if bias is None else scores + ops.cast(bias, scores.dtype)


def _softmax(scores):
    # Keras warns about a softmax over one key, which is legitimate: an empty sentence has only EOS.
    return ops.ones_like(scores) if scores.shape[-1] == 1 else ops.softmax(scores, axis=-1)
