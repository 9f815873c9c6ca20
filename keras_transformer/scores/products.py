"""Scores that are products of queries and keys (section 3.2.1)."""

from __future__ import annotations

import math

from keras_transformer.lazy_keras import keras, ops
from keras_transformer.products import at_least_float32, scaled
from keras_transformer.scores.score import AttentionScore
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class ScaledDotProduct(AttentionScore):
    """The scaled dot product of the paper, `q k / sqrt(d_k)`.

    Reference: Vaswani et al. (2017), section 3.2.1, Eq. 1.
    """

    kind = "scaled_dot_product"
    is_linear = is_product = True

    def prepare_query(self, attention: keras.Layer, query: Tensor) -> Tensor:  # noqa: D102
        return scaled(query)

    def compare(self, attention: keras.Layer, query: Tensor, key: Tensor) -> Tensor:  # noqa: D102
        return attention.kernels.similarity(query, key)  # [B, H, T, S]

    def scale(self, query: Tensor) -> float:  # noqa: D102
        return 1.0


@declared
class DotProduct(ScaledDotProduct):
    """The dot product `q k`. Differs from the paper, which divides it by `sqrt(d_k)`.

    Reference: Luong et al. (2015), "Effective Approaches to Attention-based Neural Machine
        Translation", section 3.1, `dot`.
    """

    kind = "dot_product"

    def compare(self, attention: keras.Layer, query: Tensor, key: Tensor) -> Tensor:  # noqa: D102
        # Products of scaled queries stay in the range of float16 more often than unscaled ones.
        scores = at_least_float32(super().compare(attention, query, key))
        return scores * self.scale(query)  # [B, H, T, S]

    def scale(self, query: Tensor) -> float:  # noqa: D102
        return math.sqrt(query.shape[-1])


@declared
class General(DotProduct):
    """A bilinear product `q^T W k`, with one matrix `W` per head.

    Differs from the paper: the matrix is used in addition to the projections of query and key. The
    score is not divided by `sqrt(d_k)`; instead, `W` is initialised so that the scores have the
    same variance as in Eq. 1.

    Reference: Luong et al. (2015), "Effective Approaches to Attention-based Neural Machine
        Translation", section 3.1, `general`.
    """

    kind = "general"

    def build(self, attention: keras.Layer) -> None:  # noqa: D102
        size, _ = attention.head_sizes
        attention.score_matrix = attention.add_weight(
            shape=(attention.num_heads, size, size),
            initializer=keras.initializers.RandomNormal(stddev=1 / size),
            name="score_matrix",
        )

    def prepare_query(self, attention: keras.Layer, query: Tensor) -> Tensor:  # noqa: D102
        return ops.matmul(super().prepare_query(attention, query), attention.score_matrix)
