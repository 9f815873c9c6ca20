"""`AttentionScore`, the base class of attention scores, and the scores that are products."""

from __future__ import annotations

import math

from keras_transformer.lazy_keras import keras, ops
from keras_transformer.tensors import Tensor
from keras_transformer.variants import Variant, declared


class AttentionScore(Variant):
    """Base class of attention scores: `compare(prepare_query(q), prepare_key(k))`.

    `prepare_query` and `prepare_key` compute the terms that depend on only one of the two, once per
    query and once per key. A cache holds the keys that `prepare_key` returned.

    A subclass needs a `kind`, its name in configurations. A score object holds no weights. A
    score with weights adds them to the attention layer in `build` and reads them from there.

    A runtime may have its own form of `Q K^T`, `Kernels.similarity`, and of a whole attention,
    `Kernels.attend`. A score based on dot products uses the former in `compare`, and returns a
    factor for the latter from `scale`. Any other score is computed as written in every runtime.

    Attributes:
        is_linear: Whether the score is linear in the key and `prepare_key` does nothing. Relative
            positions, which are added to keys, require this.
        is_product: Whether the score has no weights for individual key heads, so that several query
            heads can share a key head.
    """

    option = "score"
    package = "keras_transformer.scores"
    is_linear = is_product = False

    def build(self, attention: keras.Layer) -> None:
        """Adds the weights of the score to an attention layer."""

    def prepare_query(self, attention: keras.Layer, query: Tensor) -> Tensor:
        """Returns query heads `[B, H, T, K]` in the form that `compare` takes, of equal shape."""
        return query

    def prepare_key(self, attention: keras.Layer, key: Tensor) -> Tensor:
        """Returns key heads `[B, H, S, K]` in the form that `compare` takes, of equal shape."""
        return key

    def compare(self, attention: keras.Layer, query: Tensor, key: Tensor) -> Tensor:
        """Returns the score of each query with each key.

        Args:
            attention: The attention layer.
            query: Queries from `prepare_query`, `[B, H, T, K]`.
            key: Keys from `prepare_key`, `[B, H, S, K]`.

        Returns:
            `[B, H, T, S]`, floating.
        """
        raise NotImplementedError

    def scale(self, query: Tensor) -> float | None:
        """Returns the factor `f` for which the scores are `f Q K^T`; `None` if there is none.

        Q and K are the results of `prepare_query` and `prepare_key`.
        """


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
        return by_head(super().prepare_query(attention, query), attention.score_matrix)


def by_head(heads: Tensor, matrices: Tensor) -> Tensor:
    """Returns the product of heads `[B, H, T, K]` and a matrix for each head, `[H, K, K]`.

    Not `matmul`: with oneDNN on processors without AVX-512, TensorFlow's product of batches that
    are broadcast corrupts memory in a search.
    """
    return ops.einsum("BHTK,HKJ->BHTJ", heads, matrices)


def scaled(query: Tensor) -> Tensor:
    """Returns `query / sqrt(d_k)`. Scaling before the product keeps it in the range of float16."""
    return query * (1 / math.sqrt(query.shape[-1]))


def at_least_float32(scores: Tensor) -> Tensor:
    """Returns float16 and bfloat16 scores as float32, and others unchanged."""
    half = keras.backend.standardize_dtype(scores.dtype) in ("float16", "bfloat16")
    return ops.cast(scores, "float32") if half else scores
