"""The additive score: a network with one hidden layer."""

from __future__ import annotations

from keras_transformer.lazy_keras import keras, ops
from keras_transformer.scores.score import AttentionScore, by_head
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class Additive(AttentionScore):
    """A network with one hidden layer of `d_k` units per head, `v^T tanh(W q + U k)`.

    Differs from the paper, which compares it with the dot product: similar in theoretical
    complexity, but much slower in practice. A call creates a tensor `[B, H, T, S, K]`.

    Reference: Bahdanau et al. (2015), "Neural Machine Translation by Jointly Learning to Align and
        Translate", appendix A.1.2.
    """

    kind = "additive"

    def build(self, attention: keras.Layer) -> None:  # noqa: D102
        heads, (size, _) = attention.num_heads, attention.head_sizes
        normal = keras.initializers.RandomNormal(stddev=size**-0.5)
        for name, shape in (
            ("score_query", (heads, size, size)),
            ("score_key", (heads, size, size)),
            ("score_vector", (heads, 1, 1, size)),
        ):
            weight = attention.add_weight(shape=shape, initializer=normal.clone(), name=name)
            setattr(attention, name, weight)

    def prepare_query(self, attention: keras.Layer, query: Tensor) -> Tensor:  # noqa: D102
        return by_head(query, attention.score_query)  # [B, H, T, K]

    def prepare_key(self, attention: keras.Layer, key: Tensor) -> Tensor:  # noqa: D102
        return by_head(key, attention.score_key)  # [B, H, S, K]

    def compare(self, attention: keras.Layer, query: Tensor, key: Tensor) -> Tensor:  # noqa: D102
        sums = ops.expand_dims(query, axis=3) + ops.expand_dims(key, axis=2)  # [B, H, T, S, K]
        return ops.sum(ops.tanh(sums) * attention.score_vector, axis=-1)  # [B, H, T, S]
