"""T5's positions: a learned bias for each head and range of distances."""

from __future__ import annotations

import functools
from typing import Annotated

from keras_transformer.arguments import option
from keras_transformer.checks import check_count
from keras_transformer.lazy_keras import keras, np, ops
from keras_transformer.positions.checks import check_buckets
from keras_transformer.positions.position import Position, distances
from keras_transformer.positions.tables import look_up
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class T5Bias(Position):
    """Adds a learned bias for the head and the bucket of the distance to each score.

    Short distances have a bucket each; longer ones share buckets whose width grows logarithmically,
    see `t5_buckets`. Half of the buckets are for keys before the query and half for keys after it;
    in causal self-attention, all are for keys before it.

    Differs from T5: here, each self-attention has its own table, and scores are divided by
    `sqrt(d_k)`. Two options choose T5's way: with `shared=True` the first block of a stack holds
    the table of all blocks, and with `score="dot_product"` scores are not divided.

    Args:
        **options: See `help(T5Bias)`.

    Reference: Raffel et al. (2020), "Exploring the Limits of Transfer Learning with a Unified
        Text-to-Text Transformer", section 2.1; the buckets of the authors' code.
    """

    kind = "t5"
    is_relative = True

    distance: Annotated[int, check_count] = option(
        128, "Distances from this one on are in the last bucket."
    )
    buckets: Annotated[int, check_count] = option(32, "Number of buckets, a multiple of 4.")
    shared: bool = option(
        False,
        """Shares the table among all blocks of a stack, as in T5; the first block holds it.
        Otherwise each block has its own.""",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_buckets(self.buckets, self.distance)

    def build_attention(self, attention: keras.Layer) -> None:  # noqa: D102
        attention.distance_bias = attention.add_weight(
            shape=(self.buckets, attention.num_heads),
            initializer=keras.initializers.RandomNormal(stddev=attention.widths["x"] ** -0.5),
            autocast=False,  # in float32, like the scores
            name="distance_bias",
        )

    def bias(self, attention: keras.Layer, heads: Tensor, queries: Tensor, keys: Tensor) -> Tensor:  # noqa: D102
        after = 0 if attention.causal else self.distance
        buckets = t5_buckets(after, self.distance, self.buckets)  # [A + 1 + distance]
        of_distances = ops.transpose(look_up(attention.distance_bias, buckets))  # [H, ...]
        places = ops.clip(distances(queries, keys), -after, self.distance) + after  # [T, S]
        return ops.take(of_distances, ops.cast(places, "int32"), axis=1)  # [H, T, S]


@functools.lru_cache(maxsize=16)
def t5_buckets(after, distance, buckets) -> np.ndarray:
    """Returns the bucket of each distance `i - j` of query and key, from `-after` to `distance`.

    For each direction there are n buckets. The first half hold one distance each. A longer distance
    d is in bucket `n / 2 + floor(n / 2 * log(2 d / n) / log(2 distance / n))`, at most the last.

    Args:
        after: Largest distance of a key after the query. With 0 there is one direction; otherwise
            there are two, and the buckets of keys after the query come last.
        distance: Distances from this one on are in the last bucket.
        buckets: Number of buckets.

    Returns:
        Read-only NumPy array of integers.

    Example:
        >>> from keras_transformer.positions.t5 import t5_buckets
        >>> t5_buckets(0, 16, 8).tolist()
        [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7]
    """
    count = buckets // 2 if after else buckets
    exact = count // 2
    signed = np.arange(-after, distance + 1)
    far = np.abs(signed)
    octaves = np.log(np.maximum(far, exact) / exact) / np.log(distance / exact)
    # Rounding may put a quotient of logarithms just below an integer that it should be equal to.
    shared = exact + np.floor(octaves * (count - exact) + 1e-9).astype(int)
    numbers = np.where(far < exact, far, np.minimum(shared, count - 1))
    numbers = (numbers + count * (signed < 0)).astype(np.int32)
    numbers.setflags(write=False)  # shared through the cache
    return numbers
