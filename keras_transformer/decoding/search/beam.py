"""Beam search as a value, with its settings and their checks (section 6.1)."""

import dataclasses
import math
import numbers
import typing

import tensorflow as tf

from keras_transformer.checks import check_choice, check_count, is_integer
from keras_transformer.decoding.beam import NORMALIZATIONS, STOPPINGS, beam_decode
from keras_transformer.decoding.loop import check_lengths
from keras_transformer.decoding.search.base import Search, check_setting

UNLIMITED = 2**30  # tokens, more than any output has


@dataclasses.dataclass(frozen=True)
class Beam(Search):
    """Keeps the most probable hypotheses at each step: see `beam_decode`.

    The defaults are the paper's, section 6.1.

    Args:
        size: Hypotheses N that run at a time.
        length_penalty: Exponent of `"gnmt"` and `"power"`, at least 0: number, or tensor, scalar or
            `[B]`.
        normalization: `"gnmt"`, `"power"`, `"average"` or `"none"`: what scores are divided by.
        min_length: Shortest output in tokens, `eos_id` included: integer, or tensor.
        extra_length: How many tokens an output may be longer than its source: integer, or tensor.
            `None`: any number.
        max_length: Longest output in tokens: integer, or tensor. `None`: that of the cache.
        stopping: When the search of a sentence is over: `"count"`, when `size` hypotheses have
            ended, or `"score"`, when the best running one is not
            better than the worst of those; or `"narrow"`, as `"count"` with a beam that each of
            them leaves narrower: see `beam_decode`.

    Raises:
        TypeError: If `size` is not an integer.
        ValueError: If a setting is out of range or unknown; when it is called also if there are
            fewer tokens in the vocabulary than hypotheses, or the cache is shorter than
            `min_length`.

    Example:
        >>> from keras_transformer import Beam, Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> Beam(4, length_penalty=0.6)(model, [[7, 8, 3]], n_best=2, cache_length=5).tokens.shape
        TensorShape([1, 2, 5])
    """

    size: int = 4
    length_penalty: float = 0.6
    normalization: str = "gnmt"
    min_length: int = 1
    extra_length: int | None = 50
    max_length: int | None = None
    stopping: str = "count"

    inputs: typing.ClassVar[tuple] = (
        tf.TensorSpec([], tf.float32, name="length_penalty"),
        tf.TensorSpec([], tf.int32, name="min_length"),
        tf.TensorSpec([], tf.int32, name="extra_length"),
        tf.TensorSpec([], tf.int32, name="max_length"),
    )

    def __post_init__(self):
        check_count("size", self.size)
        check_choice("normalization", self.normalization, NORMALIZATIONS)
        check_choice("stopping", self.stopping, STOPPINGS)
        penalty, extra, most = self.length_penalty, self.extra_length, self.max_length
        right = isinstance(penalty, numbers.Real) and 0 <= penalty < math.inf
        check_setting("length_penalty", penalty, right, "at least 0 and finite")
        right = is_integer(self.min_length) and self.min_length >= 1
        check_setting("min_length", self.min_length, right, "an integer of at least 1")
        right = extra is None or is_integer(extra) and extra >= 0
        check_setting("extra_length", extra, right, "an integer of at least 0, or None")
        right = most is None or is_integer(most) and most >= 1
        check_setting("max_length", most, right, "an integer of at least 1, or None")

    def check(self, vocabulary, longest, n_best=1):  # noqa: D102
        if not 1 <= n_best <= self.size:
            raise ValueError(
                "`n_best` must be between 1 and the `size` of the beam. "
                f"Received: n_best={n_best}, size={self.size}."
            )
        if self.size > vocabulary.size:
            raise ValueError(
                "`size` of a beam must be at most the vocabulary's number of pieces, "
                f"{vocabulary.size}. Received: size={self.size}."
            )
        check_lengths(longest, self.min_length)

    def values(self, numbers):  # noqa: D102
        penalty, *lengths = super().values(numbers)
        return [penalty, *map(_bounded, lengths)]

    def penalty(self, tokens):  # noqa: D102
        if self.normalization == "gnmt":
            return ((5 + tokens) / 6) ** self.length_penalty
        if self.normalization == "power":
            return tokens**self.length_penalty
        return tokens if self.normalization == "average" else 1.0

    def limit(self, source_length, longest):  # noqa: D102
        wanted = tf.minimum(_bounded(self.max_length), source_length + _bounded(self.extra_length))
        return tf.minimum(tf.maximum(wanted, self.min_length), longest)

    def _decode(self, predictor, source, n_best, longest, options):
        source_length = 0  # of no effect
        if self.extra_length is not None:
            source = tf.convert_to_tensor(source, tf.int32)
            real = tf.not_equal(source, predictor.vocabulary.pad_id)  # [B, S]
            source_length = tf.reduce_sum(tf.cast(real, tf.int32), axis=1)  # [B]
        return beam_decode(
            predictor,
            source,
            self.size,
            n_best,
            self.length_penalty,
            self.normalization,
            self.min_length,
            self.limit(source_length, longest),
            cache_length=longest,
            stopping=self.stopping,
            **options,
        )

    def __str__(self):
        exponents = self.normalization in ("gnmt", "power")
        penalty = f" {self.length_penalty:g}" if exponents else ""
        stopping = {"count": "", "score": ", stopped by score", "narrow": ", narrowing"}
        return f"beam {self.size}, {self.normalization}{penalty}{stopping[self.stopping]}"


def _bounded(length):
    """A length that fits into 32 bits, also together with another one."""
    if tf.is_tensor(length):
        return length
    return UNLIMITED if length is None else min(length, UNLIMITED)
