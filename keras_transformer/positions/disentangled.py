"""Disentangled positions of DeBERTa: content is compared with distances, and distances with it."""

from __future__ import annotations

import functools
from typing import Annotated, Any

from keras_transformer.arguments import option
from keras_transformer.checks import check_count
from keras_transformer.lazy_keras import keras, np, ops
from keras_transformer.positions.checks import (
    check_buckets,
    check_linear,
    check_one_key_for_each_query,
)
from keras_transformer.positions.position import Position, distances
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class Disentangled(Position):
    """Compares queries and keys with learned vectors for the bucket of their distance as well.

    `e_ij = (q_i k_j + q_i (P W^K)_b + (P W^Q)_b k_j) / sqrt(d_k)`, where b is the bucket of `i - j`
    and `P` a table of one vector `[D]` for each bucket. The vectors are projected by the
    attention's own matrices of queries and keys. Short distances have a bucket each; longer ones
    share buckets whose width grows logarithmically, see `disentangled_buckets`.

    Differs from the original: scores are divided by `sqrt(d_k)`, not by `sqrt(3 d_k)`, because the
    matrix of queries contains the other factor; and the table is not normalised. Causal
    self-attention is not supported.

    Args:
        **options: See `help(Disentangled)`.

    Reference: He et al. (2021), "DeBERTa: Decoding-enhanced BERT with Disentangled Attention",
        section 3.1; the buckets of DeBERTaV3's code.
    """

    kind = "disentangled"
    block = None  # whose self-attention holds the table, if it is another one

    distance: Annotated[int, check_count] = option(
        512, "Distances from this one on are in the last bucket."
    )
    buckets: Annotated[int, check_count] = option(
        512,
        "Number of buckets, a multiple of 4; half of them are for keys before the query.",
    )
    shared: bool = option(
        False,
        """Shares the table among all blocks of a stack, as in DeBERTa; the first block holds it.
        Otherwise each block has its own.""",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_buckets(self.buckets, self.distance)

    def check_stack(self, stack: Any) -> None:  # noqa: D102
        check_linear(stack.block.attention.score)
        attention = stack.block.attention
        check_one_key_for_each_query(attention.num_heads, attention.num_key_value_heads)

    def build_attention(self, attention: keras.Layer) -> None:  # noqa: D102
        check_linear(attention.score)
        check_one_key_for_each_query(attention.num_heads, attention.num_key_value_heads)
        if attention.causal:
            raise ValueError(
                '`position` must not be "disentangled" in causal self-attention; give it to the '
                "encoder alone, `encoder={'position': 'disentangled'}`. "
                f"Received by {attention.name!r}: position='disentangled', causal=True."
            )
        if self.block is None:
            width = attention.widths["x"]
            attention.distance_vectors = attention.add_weight(
                shape=(self.buckets, width),
                initializer=keras.initializers.RandomNormal(stddev=1.0),  # as normalised features
                name="distance_vectors",
            )

    def bias(self, attention: keras.Layer, heads: Tensor, queries: Tensor, keys: Tensor) -> Tensor:  # noqa: D102
        table, _ = attention.project_memory(self._vectors(attention))  # [1, H, R, K]
        scores = _for_all_rows(functools.partial(attention.score.compare, attention), heads, table)
        places = self._buckets(queries, keys)  # [T, S]
        return _pick(scores, ops.arange(ops.shape(heads)[2])[:, None], places)  # [B, H, T, S]

    def key_bias(  # noqa: D102
        self, attention: keras.Layer, heads: Tensor, queries: Tensor, keys: Tensor
    ) -> Tensor:
        table = attention.project_query(self._vectors(attention))  # [1, H, R, K]

        def compare(key, query):
            return ops.swapaxes(attention.score.compare(attention, query, key), 2, 3)

        scores = _for_all_rows(compare, heads, table)  # [B, H, S, R]
        places = self._buckets(queries, keys)  # [T, S]
        return _pick(scores, ops.arange(ops.shape(heads)[2])[None, :], places)  # [B, H, T, S]

    def shared_with(self, block: Any) -> Position:
        """Returns the position of another block, with its own matrices and the table of `block`."""
        return SharedTable(self.distance, self.buckets, block)

    def _vectors(self, attention):
        owner = attention if self.block is None else self.block.self_attention
        vectors = ops.convert_to_tensor(owner.distance_vectors)
        return ops.expand_dims(ops.cast(vectors, attention.compute_dtype), axis=0)  # [1, R, D]

    def _buckets(self, queries, keys):
        """Returns the bucket of each pair of positions, int32 `[T, S]`."""
        buckets = disentangled_buckets(self.distance, self.buckets)  # [2 * distance + 1]
        far = ops.clip(distances(queries, keys), -self.distance, self.distance)
        return ops.take(buckets, ops.cast(far + self.distance, "int32"), axis=0)


class SharedTable(Disentangled):
    """Disentangled positions with the table of another block, projected by their own matrices.

    Args:
        distance, buckets: See `Disentangled`.
        block: The `Block` whose self-attention holds the table. It must be built first.
    """

    def __init__(self, distance: int, buckets: int, block: Any):
        super().__init__(distance, buckets)
        self.block = block


@functools.lru_cache(maxsize=16)
def disentangled_buckets(distance, buckets) -> np.ndarray:
    """Returns the bucket of each distance `i - j` of query and key, from `-distance` to `distance`.

    With n buckets for each direction and `m = n / 2`, a distance d of at most m is in bucket
    `n + d`. A longer one is in bucket `n + m + ceil((m - 1) log(d / m) / log((distance - 1) / m))`,
    at most the last. The buckets of keys after the query are `n - d`, at least the first.

    Args:
        distance: Distances from this one on are in the last bucket.
        buckets: Number of buckets 2 n.

    Returns:
        Read-only NumPy array of integers.

    Example:
        >>> from keras_transformer.positions.disentangled import disentangled_buckets
        >>> disentangled_buckets(9, 8)[9:].tolist()
        [4, 5, 6, 7, 7, 7, 7, 7, 7, 7]
    """
    count, exact = buckets // 2, buckets // 4
    far = np.abs(np.arange(-distance, distance + 1))
    octaves = np.log(np.maximum(far, exact) / exact) / np.log((distance - 1) / exact)
    # Rounding may put a quotient of logarithms just above an integer that it should be equal to.
    shared = exact + np.ceil(octaves * (exact - 1) - 1e-9).astype(int)
    signed = np.where(far <= exact, far, shared) * np.sign(np.arange(-distance, distance + 1))
    numbers = np.clip(signed + count, 0, buckets - 1).astype(np.int32)
    numbers.setflags(write=False)  # shared through the cache
    return numbers


def _for_all_rows(compare, heads, table):
    """Returns the comparisons `[B, H, T, R]` of heads `[B, H, T, K]` with a table `[1, H, R, K]`.

    Args:
        compare: Function of `[1, H, M, K]` and `[1, H, R, K]` that returns `[1, H, M, R]`.
        heads, table: See above.
    """
    batch, count, length, size = ops.shape(heads)
    flat = ops.reshape(ops.transpose(heads, (1, 0, 2, 3)), (1, count, -1, size))  # [1, H, B * T, K]
    scores = ops.reshape(compare(flat, table), (count, batch, length, table.shape[2]))
    return ops.transpose(scores, (1, 0, 2, 3))  # [B, H, T, R]


def _pick(scores, rows, places):
    """Returns `scores[..., rows, places]`, `[B, H, T, S]`, as a look-up on one axis.

    Args:
        scores: `[B, H, M, R]`.
        rows: Integers `[T, 1]` or `[1, S]`.
        places: Integers `[T, S]`.
    """
    batch, count, _, size = ops.shape(scores)
    flat = ops.reshape(scores, (batch, count, -1))  # [B, H, M * R]
    index = ops.cast(rows, "int32") * size + places  # [T, S]
    picked = ops.take(flat, ops.reshape(index, (-1,)), axis=2)  # [B, H, T * S]
    return ops.reshape(picked, (batch, count, *ops.shape(places)))
