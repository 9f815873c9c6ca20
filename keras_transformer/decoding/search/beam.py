"""Beam search as a value, with its settings and their checks (section 6.1)."""

import dataclasses
import typing
from typing import Any

import tensorflow as tf

from keras_transformer.checks import check_count
from keras_transformer.decoding.beam import beam_decode
from keras_transformer.decoding.loop import check_lengths
from keras_transformer.decoding.search.base import Search, inputs_of
from keras_transformer.search_settings import NORMALIZATIONS, UNLIMITED, BeamSettings
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class Beam(BeamSettings, Search):
    """Keeps the most probable hypotheses at each step: see `beam_decode`.

    The defaults are the paper's, section 6.1.

    Args:
        size: Number of running hypotheses N.
        length_penalty: Exponent of `"gnmt"` and `"power"`, at least 0: number, or tensor, scalar or
            `[B]`.
        normalization: Divisor of the scores: `"gnmt"`, `"power"`, `"average"` or `"none"`.
        min_length: Minimum number of new tokens, `eos_id` included: integer, or tensor.
        extra_length: Number of tokens by which the new part of an output may be longer than its
            source, whose end counts: integer, or tensor. For a language model, it may be longer
            than the end alone. `None`: no limit. It has no effect if the predictor reports no
            lengths of sources, see `Predictor.lengths`.
        max_length: Maximum number of new tokens: integer, or tensor, scalar or `[B]`. The tokens
            with which an output begins do not count, see `greedy_decode`. `None`: the length of the
            cache, which always limits an output.
        stopping: End of the search of a sentence. `"count"`: when `size` hypotheses have finished.
            `"score"`: when in addition the best running hypothesis is not better than the worst
            finished one. `"narrow"`: like `"count"`, but the beam shrinks by one for every finished
            hypothesis. See `beam_decode`.

    Raises:
        TypeError: If `size` is not an integer.
        ValueError: If a setting is out of range or unknown. When called, also raised if the
            vocabulary has fewer tokens than the beam has hypotheses, or the cache is shorter than
            `min_length`.

    Example:
        >>> from keras_transformer import Beam, Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> Beam(4, length_penalty=0.6)(model, [[7, 8, 3]], n_best=2, cache_length=5).tokens.shape
        TensorShape([1, 2, 5])
    """

    inputs: typing.ClassVar[tuple] = inputs_of(BeamSettings)

    def __post_init__(self) -> None:
        check_count("size", self.size)
        super().__post_init__()

    def check(self, vocabulary: Any, longest: int, n_best: int = 1) -> None:  # noqa: D102
        if not 1 <= n_best <= self.size:
            raise ValueError(
                "`n_best` must be between 1 and the `size` of the beam. "
                f"Received: n_best={n_best}, size={self.size}."
            )
        if self.size > vocabulary.size:
            raise ValueError(
                "`size` of a beam must be at most the vocabulary's number of tokens, "
                f"{vocabulary.size}. Received: size={self.size}."
            )
        check_lengths(longest, self.min_length)

    def values(self, numbers: Tensor) -> list[Tensor]:  # noqa: D102
        penalty, *lengths = super().values(numbers)
        return [penalty, *map(_bounded, lengths)]

    def penalty(self, tokens: Tensor) -> Tensor:  # noqa: D102
        return NORMALIZATIONS[self.normalization](tokens, self.length_penalty)

    def limit(self, source_length: Tensor, longest: Tensor) -> Tensor:  # noqa: D102
        wanted = tf.minimum(_bounded(self.max_length), source_length + _bounded(self.extra_length))
        return tf.minimum(tf.maximum(wanted, self.min_length), longest)

    def _decode(self, predictor, source, n_best, longest, options):
        return beam_decode(
            predictor,
            source,
            self.size,
            n_best,
            self.length_penalty,
            self.normalization,
            self.min_length,
            self._limits(predictor, source, longest),
            cache_length=longest,
            stopping=self.stopping,
            **options,
        )

    def _limits(self, predictor, source, longest):
        lengths = None if self.extra_length is None else predictor.lengths(source)  # [B]
        if lengths is None:
            return dataclasses.replace(self, extra_length=None).limit(0, longest)
        return self.limit(lengths, longest)

    def __str__(self) -> str:
        penalty = f" {self.length_penalty:g}" if self.has_exponent else ""
        stopping = {"count": "", "score": ", stopped by score", "narrow": ", narrowing"}
        return f"beam {self.size}, {self.normalization}{penalty}{stopping[self.stopping]}"


def _bounded(length):
    """Returns the length, limited so that the sum of two lengths fits into 32 bits."""
    if tf.is_tensor(length):
        return length
    return UNLIMITED if length is None else min(length, UNLIMITED)
