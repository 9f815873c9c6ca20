"""Relative positions: a learned vector for each distance, added to keys and values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any

from keras_transformer.arguments import option
from keras_transformer.checks import check_count
from keras_transformer.lazy_keras import keras, ops
from keras_transformer.positions.checks import check_linear
from keras_transformer.positions.position import Position, distances
from keras_transformer.positions.tables import look_up
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class Relative(Position):
    """Adds a learned vector for the distance of query and key to the key, and one to the value.

    `e_ij = q_i (k_j + a^K_ij) / sqrt(d_k)` and `z_i = sum_j softmax(e_i)_j (v_j + a^V_ij)` with
    `a_ij = w[max(-k, min(k, i - j))]`: all distances beyond `k` share a vector.

    Other linear scores also compare the query with `k_j + a^K_ij`. A score that is not linear in
    the key, such as the additive one, raises an error. A call creates two tensors `[T, S, K]`,
    independent of the batch size.

    Differs from the original: the heads of a layer share their vectors, as in its section 3.3,
    while its base model has vectors for each head. In causal self-attention there are no vectors
    for keys after the query. Distances are `i - j`, with the opposite sign of the original.

    Args:
        **options: See `help(Relative)`.

    Reference: Shaw et al. (2018), "Self-Attention with Relative Position Representations",
        sections 3.1 to 3.3.
    """

    kind = "relative"
    is_relative = True

    distance: Annotated[int, check_count] = option(
        16,  # section 4.1, base model
        "Largest distance with a vector of its own. Larger distances share this vector.",
    )

    def check_stack(self, stack: Any) -> None:  # noqa: D102
        check_linear(stack.block.attention.score)

    def build_attention(self, attention: keras.Layer) -> None:  # noqa: D102
        check_linear(attention.score)
        count = self.distance + 1 + self._after(attention)
        for name, size in zip(("keys", "values"), attention.head_sizes, strict=True):
            weight = attention.add_weight(
                shape=(count, size),
                initializer=keras.initializers.RandomNormal(stddev=size**-0.5),
                name=f"relative_{name}",
            )
            setattr(attention, f"relative_{name}", weight)

    def bias(self, attention: keras.Layer, heads: Tensor, queries: Tensor, keys: Tensor) -> Tensor:  # noqa: D102
        vectors = self._vectors(attention, attention.relative_keys, queries, keys)  # [T, S, K]
        compare = functools.partial(attention.score.compare, attention)
        return for_every_position(compare, heads, ops.cast(vectors, heads.dtype))  # [B, H, T, S]

    def values(self, attention: keras.Layer, queries: Tensor, keys: Tensor) -> Tensor:  # noqa: D102
        return self._vectors(attention, attention.relative_values, queries, keys)  # [T, S, K]

    def _vectors(self, attention, table, queries, keys):
        after = self._after(attention)
        rows = ops.clip(distances(queries, keys), -after, self.distance) + after  # [T, S]
        return look_up(table, rows)  # [T, S, K]

    def _after(self, attention):
        """Returns the number of distances to keys after the query."""
        return 0 if attention.causal else self.distance


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
