"""Scores: how well a key fits a query, before the softmax (section 3.2.1).

A new score is a new class, in a file of its own if it is long, a name in `KINDS` and the same name
among the choices of `BlockConfig.score`, which cannot read it here without importing Keras.
"""

import math

import keras
from keras import ops

from keras_transformer.checks import check_choice
from keras_transformer.layers.dot_product import at_least_float32, scaled


class AttentionScore:
    """The interface: `compare(prepare_query(q), prepare_key(k))` of all queries with all keys.

    What depends on a query or on a key alone is computed once for each: a cache holds the keys as
    `prepare_key` returned them.

    A score holds no weights. One that needs some adds them to the attention in `build`, and reads
    them from there.

    `Kernels.similarity` is a runtime's own form of `Q K^T`, and `Kernels.attend` of a whole
    attention. A score that is made of such products calls the first in `compare` and returns a
    factor for the second in `scale`; any other computes in its own way, in every runtime.

    Attributes:
        is_linear: Whether the score of a sum of keys is the sum of their scores, and `prepare_key`
            does nothing. Relative positions, which are added to keys, need that.
        is_product: Whether it has no weights for single key heads, so that several query heads can
            share a key head.
    """

    is_linear = is_product = False

    def build(self, attention):
        """Adds weights to an attention."""

    def prepare_query(self, attention, query):
        """Returns the query heads `[B, H, T, K]` as `compare` takes them, of the same shape."""
        return query

    def prepare_key(self, attention, key):
        """Returns the key heads `[B, H, S, K]` as `compare` takes them, of the same shape."""
        return key

    def compare(self, attention, query, key):
        """Returns the score of each query with each key.

        Args:
            attention: The attention.
            query: From `prepare_query`, `[B, H, T, K]`.
            key: From `prepare_key`, `[B, H, S, K]`.

        Returns:
            `[B, H, T, S]`, floating.
        """
        raise NotImplementedError

    def scale(self, query):
        """Returns the factor with which scores are `Q K^T` of what `prepare_query` and
        `prepare_key` returned; `None` where they are no such product.
        """

    def get_config(self):
        """Returns the constructor's arguments."""
        return {}

    @classmethod
    def from_config(cls, config):
        """Returns the score that `get_config` described."""
        return cls(**config)


@keras.saving.register_keras_serializable(package="keras_transformer")
class ScaledDotProduct(AttentionScore):
    """The paper's score, `q k / sqrt(d_k)`.

    Reference: Vaswani et al. (2017), section 3.2.1, Eq. 1.
    """

    is_linear = is_product = True

    def prepare_query(self, attention, query):  # noqa: D102
        return scaled(query)

    def compare(self, attention, query, key):  # noqa: D102
        return attention.kernels.similarity(query, key)  # [B, H, T, S]

    def scale(self, query):  # noqa: D102
        return 1.0


@keras.saving.register_keras_serializable(package="keras_transformer")
class DotProduct(ScaledDotProduct):
    """The product alone, `q k`. Differs from the paper, which divides it by `sqrt(d_k)`.

    Reference: Luong et al. (2015), "Effective Approaches to Attention-based Neural Machine
        Translation", section 3.1, `dot`.
    """

    def compare(self, attention, query, key):  # noqa: D102
        # The product of scaled queries lies in the range of float16 more often than that of others.
        scores = at_least_float32(super().compare(attention, query, key))
        return scores * self.scale(query)  # [B, H, T, S]

    def scale(self, query):  # noqa: D102
        return math.sqrt(query.shape[-1])


@keras.saving.register_keras_serializable(package="keras_transformer")
class General(DotProduct):
    """A product with a matrix between, `q^T W k`, one for each head.

    Differs from the paper: a matrix more beside the projections of query and key. It is not divided
    by `sqrt(d_k)`, but begins so small that the scores vary as those of Eq. 1.

    Reference: Luong et al. (2015), "Effective Approaches to Attention-based Neural Machine
        Translation", section 3.1, `general`.
    """

    def build(self, attention):  # noqa: D102
        size, _ = attention.head_sizes
        attention.score_matrix = attention.add_weight(
            shape=(attention.num_heads, size, size),
            initializer=keras.initializers.RandomNormal(stddev=1 / size),
            name="score_matrix",
        )

    def prepare_query(self, attention, query):  # noqa: D102
        return ops.matmul(super().prepare_query(attention, query), attention.score_matrix)


@keras.saving.register_keras_serializable(package="keras_transformer")
class Additive(AttentionScore):
    """A network with one hidden layer of `d_k` units, `v^T tanh(W q + U k)`, one for each head.

    Differs from the paper, which compares it with the product: similar in theory, and much slower.
    A call makes a tensor `[B, H, T, S, K]`.

    Reference: Bahdanau et al. (2015), "Neural Machine Translation by Jointly Learning to Align and
        Translate", appendix A.1.2.
    """

    def build(self, attention):  # noqa: D102
        heads, (size, _) = attention.num_heads, attention.head_sizes
        normal = keras.initializers.RandomNormal(stddev=size**-0.5)
        for name, shape in (
            ("score_query", (heads, size, size)),
            ("score_key", (heads, size, size)),
            ("score_vector", (heads, 1, 1, size)),
        ):
            weight = attention.add_weight(shape=shape, initializer=normal.clone(), name=name)
            setattr(attention, name, weight)

    def prepare_query(self, attention, query):  # noqa: D102
        return ops.matmul(query, attention.score_query)  # [B, H, T, K]

    def prepare_key(self, attention, key):  # noqa: D102
        return ops.matmul(key, attention.score_key)  # [B, H, S, K]

    def compare(self, attention, query, key):  # noqa: D102
        sums = ops.expand_dims(query, axis=3) + ops.expand_dims(key, axis=2)  # [B, H, T, S, K]
        return ops.sum(ops.tanh(sums) * attention.score_vector, axis=-1)  # [B, H, T, S]


KINDS = {
    "scaled_dot_product": ScaledDotProduct,
    "dot_product": DotProduct,
    "general": General,
    "additive": Additive,
}


def get(identifier):
    """Returns an `AttentionScore`.

    Args:
        identifier: One, or its name in `KINDS`, or what `serialize` returned.

    Raises:
        ValueError: If there is none of that name.
    """
    if isinstance(identifier, AttentionScore):
        return identifier
    if isinstance(identifier, dict):
        return keras.saving.deserialize_keras_object(identifier)
    check_choice("score", identifier, KINDS)
    return KINDS[identifier]()


def serialize(score):
    """Returns an `AttentionScore` as plain values."""
    return keras.saving.serialize_keras_object(score)
