"""Rows of tables, and products of queries with keys, for layers and for values of options."""

import math
from collections.abc import Callable

from keras_transformer.lazy_keras import keras, ops
from keras_transformer.tensors import Tensor


def look_up(table: Tensor, tokens: Tensor) -> Tensor:
    """Returns the rows `[B, T, D]` of a table, a variable `[V, D]`, for token ids `[B, T]`."""
    # TensorFlow's gradient of a look-up is a list of rows with two entries for a token that occurs
    # twice, and Keras's optimizers square them separately. The reshape makes the gradient dense.
    whole = ops.reshape(ops.convert_to_tensor(table), table.shape)
    return ops.take(whole, ops.cast(tokens, "int32"), axis=0)


def for_every_position(
    product: Callable[[Tensor, Tensor], Tensor], x: Tensor, pairs: Tensor
) -> Tensor:
    """Returns a product of queries with vectors that depend on the position of the query.

    Computes one product over batch and heads per position, as in Shaw et al. (2018), section 3.3.

    Args:
        product: Function of `[1, T, M, X]` and `[1, T, S, K]` that returns `[1, T, M, Y]`.
        x: `[B, H, T, X]`.
        pairs: One vector for each pair of query and key, `[T, S, K]`; T may be 1, for all queries.

    Returns:
        `[B, H, T, Y]`.
    """
    batch, heads, length, size = ops.shape(x)
    by_position = ops.transpose(x, (2, 0, 1, 3))  # [T, B, H, X]
    by_position = ops.reshape(by_position, (1, ops.shape(pairs)[0], -1, size))  # [1, T, B * H, X]
    products = product(by_position, ops.expand_dims(pairs, axis=0))  # [1, T, B * H, Y]
    products = ops.reshape(products, (length, batch, heads, ops.shape(products)[-1]))
    return ops.transpose(products, (1, 2, 0, 3))  # [B, H, T, Y]


def scaled(query: Tensor) -> Tensor:
    """Returns `query / sqrt(d_k)`. Scaling before the product keeps it in the range of float16."""
    return query * (1 / math.sqrt(query.shape[-1]))


def at_least_float32(scores: Tensor) -> Tensor:
    """Returns float16 and bfloat16 scores as float32, and others unchanged."""
    half = keras.backend.standardize_dtype(scores.dtype) in ("float16", "bfloat16")
    return ops.cast(scores, "float32") if half else scores
