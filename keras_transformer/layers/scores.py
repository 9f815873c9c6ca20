"""Attention scores: functions that compare queries with keys before the softmax (section 3.2.1).

To add a score, write a class (in its own file if it is long) and add its name to `KINDS` here and
to the choices of `BlockConfig.score`, which must not import this module because it imports Keras.
Scores of users are objects, or the names of classes that are registered with Keras.
"""

import math
from typing import Any

import keras
from keras import ops

from keras_transformer import variants
from keras_transformer.layers.dot_product import at_least_float32, scaled
from keras_transformer.tensors import Tensor
from keras_transformer.variants import Variant


class AttentionScore(Variant):
    """Base class of attention scores: `compare(prepare_query(q), prepare_key(k))`.

    `prepare_query` and `prepare_key` compute the terms that depend on only one of the two, once per
    query and once per key. A cache holds the keys that `prepare_key` returned.

    A score object holds no weights. A score with weights adds them to the attention layer in
    `build` and reads them from there.

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


@keras.saving.register_keras_serializable(package="keras_transformer")
class ScaledDotProduct(AttentionScore):
    """The scaled dot product of the paper, `q k / sqrt(d_k)`.

    Reference: Vaswani et al. (2017), section 3.2.1, Eq. 1.
    """

    is_linear = is_product = True

    def prepare_query(self, attention: keras.Layer, query: Tensor) -> Tensor:  # noqa: D102
        return scaled(query)

    def compare(self, attention: keras.Layer, query: Tensor, key: Tensor) -> Tensor:  # noqa: D102
        return attention.kernels.similarity(query, key)  # [B, H, T, S]

    def scale(self, query: Tensor) -> float:  # noqa: D102
        return 1.0


@keras.saving.register_keras_serializable(package="keras_transformer")
class DotProduct(ScaledDotProduct):
    """The dot product `q k`. Differs from the paper, which divides it by `sqrt(d_k)`.

    Reference: Luong et al. (2015), "Effective Approaches to Attention-based Neural Machine
        Translation", section 3.1, `dot`.
    """

    def compare(self, attention: keras.Layer, query: Tensor, key: Tensor) -> Tensor:  # noqa: D102
        # Products of scaled queries stay in the range of float16 more often than unscaled ones.
        scores = at_least_float32(super().compare(attention, query, key))
        return scores * self.scale(query)  # [B, H, T, S]

    def scale(self, query: Tensor) -> float:  # noqa: D102
        return math.sqrt(query.shape[-1])


@keras.saving.register_keras_serializable(package="keras_transformer")
class General(DotProduct):
    """A bilinear product `q^T W k`, with one matrix `W` per head.

    Differs from the paper: the matrix is used in addition to the projections of query and key. The
    score is not divided by `sqrt(d_k)`; instead, `W` is initialised so that the scores have the
    same variance as in Eq. 1.

    Reference: Luong et al. (2015), "Effective Approaches to Attention-based Neural Machine
        Translation", section 3.1, `general`.
    """

    def build(self, attention: keras.Layer) -> None:  # noqa: D102
        size, _ = attention.head_sizes
        attention.score_matrix = attention.add_weight(
            shape=(attention.num_heads, size, size),
            initializer=keras.initializers.RandomNormal(stddev=1 / size),
            name="score_matrix",
        )

    def prepare_query(self, attention: keras.Layer, query: Tensor) -> Tensor:  # noqa: D102
        return ops.matmul(super().prepare_query(attention, query), attention.score_matrix)


@keras.saving.register_keras_serializable(package="keras_transformer")
class Additive(AttentionScore):
    """A network with one hidden layer of `d_k` units per head, `v^T tanh(W q + U k)`.

    Differs from the paper, which compares it with the dot product: similar in theoretical
    complexity, but much slower in practice. A call creates a tensor `[B, H, T, S, K]`.

    Reference: Bahdanau et al. (2015), "Neural Machine Translation by Jointly Learning to Align and
        Translate", appendix A.1.2.
    """

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
        return ops.matmul(query, attention.score_query)  # [B, H, T, K]

    def prepare_key(self, attention: keras.Layer, key: Tensor) -> Tensor:  # noqa: D102
        return ops.matmul(key, attention.score_key)  # [B, H, S, K]

    def compare(self, attention: keras.Layer, query: Tensor, key: Tensor) -> Tensor:  # noqa: D102
        sums = ops.expand_dims(query, axis=3) + ops.expand_dims(key, axis=2)  # [B, H, T, S, K]
        return ops.sum(ops.tanh(sums) * attention.score_vector, axis=-1)  # [B, H, T, S]


KINDS = {
    "scaled_dot_product": ScaledDotProduct,
    "dot_product": DotProduct,
    "general": General,
    "additive": Additive,
}


def get(identifier: AttentionScore | str | dict[str, Any]) -> AttentionScore:
    """Returns an `AttentionScore`.

    Args:
        identifier: An `AttentionScore`, a name in `KINDS`, the name of a registered class, or the
            result of `serialize`.

    Raises:
        ValueError: If the name is unknown.
    """
    score = variants.restored("score", identifier)
    if isinstance(score, AttentionScore):
        return score
    variants.check_variant("score", KINDS, "score", score)
    kind: Any = KINDS.get(score) or variants.own_class("score", score)
    return kind()


def serialize(score: AttentionScore) -> dict[str, Any]:
    """Returns an `AttentionScore` as a dictionary of plain values."""
    return variants.plain(score)
