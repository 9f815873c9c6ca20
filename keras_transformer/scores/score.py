"""`AttentionScore`, the interface of scores: they compare queries with keys before the softmax."""

from __future__ import annotations

from keras_transformer.lazy_keras import keras
from keras_transformer.tensors import Tensor
from keras_transformer.variants import Variant


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
