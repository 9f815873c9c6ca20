"""Base class of searches whose only setting is the maximum length of an output."""

import dataclasses
import typing
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.loop import smaller
from keras_transformer.decoding.search.base import Search, inputs_of
from keras_transformer.search_settings import UNLIMITED, GreedySettings
from keras_transformer.tensors import Tensor

Kind = typing.TypeVar("Kind", bound="Limited")


@dataclasses.dataclass(frozen=True)
class Limited(GreedySettings, Search):
    """Base class of `Greedy` and `BestPath`.

    Args:
        max_length: Maximum number of new tokens: integer, or tensor, scalar or `[B]`. The tokens
            with which an output begins do not count, see `greedy_decode`. `None`: the length of the
            cache, which always limits an output.
    """

    @property
    def inputs(self) -> tuple[tf.TensorSpec, ...]:  # ty: ignore[incompatible-property-override]
        """The limit, unless there is none: one graph then serves all limits, and one no limit."""
        return () if self.max_length is None else inputs_of(GreedySettings)

    @property
    def kind(self: Kind) -> Kind:  # noqa: D102
        return self if self.max_length is None else type(self)(UNLIMITED)

    def values(self, numbers: Tensor) -> list[Any]:  # noqa: D102
        return [min(length, UNLIMITED) for length in super().values(numbers)]

    def limit(self, source_length: Tensor, longest: Tensor) -> Tensor:  # noqa: D102
        return smaller(self.max_length, longest)
