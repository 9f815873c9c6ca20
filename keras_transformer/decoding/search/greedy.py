"""Greedy search as a value."""

import dataclasses
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.greedy import greedy_decode
from keras_transformer.decoding.search.base import Search, inputs_of, smaller
from keras_transformer.search_settings import UNLIMITED, GreedySettings
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class Greedy(GreedySettings, Search):
    """Takes the most probable token at each step: see `greedy_decode`.

    Args:
        max_length: Maximum length of an output in tokens: integer, or tensor, scalar or `[B]`.
            `None`: that of the cache, which also limits larger values.

    Raises:
        ValueError: If `max_length` is out of range.

    Example:
        >>> from keras_transformer import Greedy, Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> Greedy(max_length=5)(model, [[7, 8, 3]], cache_length=9).tokens.shape
        TensorShape([1, 1, 9])
    """

    @property
    def inputs(self) -> tuple[tf.TensorSpec, ...]:  # ty: ignore[incompatible-property-override]
        """The limit, unless there is none: one graph then serves all limits, and one no limit."""
        return () if self.max_length is None else inputs_of(GreedySettings)

    @property
    def kind(self) -> "Greedy":  # noqa: D102
        return self if self.max_length is None else Greedy(UNLIMITED)

    def values(self, numbers: Tensor) -> list[Any]:  # noqa: D102
        return [min(length, UNLIMITED) for length in super().values(numbers)]

    def limit(self, source_length: Tensor, longest: Tensor) -> Tensor:  # noqa: D102
        return smaller(self.max_length, longest)

    def _decode(self, predictor, source, n_best, longest, options):
        options = {"max_length": self.limit(None, longest), **options}
        return greedy_decode(predictor, source, cache_length=longest, **options)

    def __str__(self) -> str:
        return "greedy"
