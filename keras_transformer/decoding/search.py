"""Searches as values: `Greedy`, `Beam` and `Sample`, with their settings and checks."""

import dataclasses
import math
import numbers
import typing

import tensorflow as tf

from keras_transformer.checks import check_choice, check_count, is_integer
from keras_transformer.decoding.beam import NORMALIZATIONS, beam_decode
from keras_transformer.decoding.greedy import greedy_decode
from keras_transformer.decoding.loop import check_lengths
from keras_transformer.decoding.predictor import predictor_of
from keras_transformer.decoding.sampling import check_sampling, sample_decode

UNLIMITED = 2**30  # tokens, more than any output has


class Found(typing.NamedTuple):
    """The result of a search: M outputs of each sentence, the best first."""

    tokens: tf.Tensor  # [B, M, L], int32
    scores: tf.Tensor  # [B, M], float32
    token_scores: tf.Tensor | None = None  # [B, M, L], float32, if asked for
    alignment: tf.Tensor | None = None  # [B, M, L, S], float32, if asked for


@dataclasses.dataclass(frozen=True)
class Search:
    """What `Greedy`, `Beam` and `Sample` share: each is called on a model and token ids.

    Call arguments:
        model: A `Transformer`, or any other `Predictor`.
        source: Token ids `[B, S]`, integer, each row ending in `eos_id` and then padding; or what
            the predictor reads.
        n_best: Outputs M of each sentence: 1, or with a beam up to its size.
        cache_length: Longest output L in tokens, an integer. `None`: the model's `max_length`.
        alignment: See `greedy_decode`.
        **options: Other arguments of `greedy_decode`, `beam_decode` or `sample_decode`.

    Returns:
        `Found`.

    Raises:
        ValueError: If a setting is out of range.

    Attributes:
        inputs: The `tf.TensorSpec`s of the fields that may be tensors, each with its field's name.
            One graph serves all their values.
    """

    inputs: typing.ClassVar[tuple] = ()

    def __call__(self, model, source, n_best=1, cache_length=None, alignment=None, **options):
        predictor = predictor_of(model, alignment)
        longest = predictor.max_length if cache_length is None else cache_length
        self.check(predictor.vocabulary, longest, n_best)
        outputs = self._decode(predictor, source, n_best, longest, options)
        if not isinstance(outputs, dict):
            outputs = dict(zip(("tokens", "scores"), outputs, strict=True))
        if outputs["tokens"].shape.rank == 2:
            outputs = {name: tf.expand_dims(value, 1) for name, value in outputs.items()}  # M = 1
        return Found(**outputs)

    def check(self, vocabulary, longest, n_best=1):
        """Raises unless the settings fit a model.

        Args:
            vocabulary: The `Vocabulary` of its predictor.
            longest: Longest output in tokens.
            n_best: Outputs of each sentence.
        """
        if n_best != 1:
            raise ValueError(
                "`n_best` must be 1 where a search finds one output. "
                f"Received: n_best={n_best}, search={self!r}."
            )

    @property
    def kind(self):
        """The search with defaults in the place of `inputs`: searches of a kind share a graph."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return self.with_values([defaults[spec.name] for spec in self.inputs])

    def values(self, numbers):
        """Returns the values of `inputs` for a batch.

        Args:
            numbers: List of integers, the number of each sentence; its sample depends on it.
        """
        return [getattr(self, spec.name) for spec in self.inputs]

    def with_values(self, values):
        """Returns the search with other values of `inputs`, numbers or tensors."""
        names = (spec.name for spec in self.inputs)
        return dataclasses.replace(self, **dict(zip(names, values, strict=True)))

    def penalty(self, tokens):
        """Returns what the log-probability of an output of that many tokens is divided by."""
        return 1.0

    def limit(self, source_length, longest):
        """Returns the most tokens of an output, integers or tensors as the arguments are.

        Args:
            source_length: Tokens of the source, `eos_id` included.
            longest: Longest output there can be.
        """
        return longest


@dataclasses.dataclass(frozen=True)
class Greedy(Search):
    """Takes the most probable token at each step: see `greedy_decode`."""

    def _decode(self, predictor, source, n_best, longest, options):
        return greedy_decode(predictor, source, cache_length=longest, **options)

    def __str__(self):
        return "greedy"


@dataclasses.dataclass(frozen=True)
class Beam(Search):
    """Keeps the most probable hypotheses at each step: see `beam_decode`.

    The defaults are the paper's, section 6.1.

    Args:
        size: Hypotheses N that run at a time.
        length_penalty: Exponent of `"gnmt"`, at least 0: number, or tensor, scalar or `[B]`.
        normalization: `"gnmt"`, `"average"` or `"none"`: what scores are divided by.
        min_length: Shortest output in tokens, `eos_id` included: integer, or tensor.
        extra_length: How many tokens an output may be longer than its source: integer, or tensor.
            `None`: any number.
        max_length: Longest output in tokens: integer, or tensor. `None`: that of the cache.

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

    inputs: typing.ClassVar[tuple] = (
        tf.TensorSpec([], tf.float32, name="length_penalty"),
        tf.TensorSpec([], tf.int32, name="min_length"),
        tf.TensorSpec([], tf.int32, name="extra_length"),
        tf.TensorSpec([], tf.int32, name="max_length"),
    )

    def __post_init__(self):
        check_count("size", self.size)
        check_choice("normalization", self.normalization, NORMALIZATIONS)
        penalty, extra, most = self.length_penalty, self.extra_length, self.max_length
        right = isinstance(penalty, numbers.Real) and 0 <= penalty < math.inf
        _check("length_penalty", penalty, right, "at least 0 and finite")
        right = is_integer(self.min_length) and self.min_length >= 1
        _check("min_length", self.min_length, right, "an integer of at least 1")
        right = extra is None or is_integer(extra) and extra >= 0
        _check("extra_length", extra, right, "an integer of at least 0, or None")
        right = most is None or is_integer(most) and most >= 1
        _check("max_length", most, right, "an integer of at least 1, or None")

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
            **options,
        )

    def __str__(self):
        penalty = f" {self.length_penalty:g}" if self.normalization == "gnmt" else ""
        return f"beam {self.size}, {self.normalization}{penalty}"


@dataclasses.dataclass(frozen=True)
class Sample(Search):
    """Draws tokens at random: see `sample_decode`.

    What a sentence becomes depends on the seed and on the number of the sentence, which is its
    place in the list or the batch: the same sentence, several times in it, has several samples.

    Args:
        temperature: At least 0. 0 is greedy search.
        top_k: Tokens to draw from. 0: all.
        top_p: Probability of the tokens to draw from, from 0 to 1. 1: all.
        seed: Integer of 32 bits, or tensor `[B, 2]`: two for each sentence.

    Raises:
        ValueError: If a setting is out of range.

    Example:
        >>> from keras_transformer import Sample, Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> Sample(temperature=0.7, top_p=0.9, seed=1)(model, [[7, 8, 3]]).scores.shape
        TensorShape([1, 1])
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    inputs: typing.ClassVar[tuple] = (
        tf.TensorSpec([], tf.float32, name="temperature"),
        tf.TensorSpec([], tf.int32, name="top_k"),
        tf.TensorSpec([], tf.float32, name="top_p"),
        tf.TensorSpec([None, 2], tf.int32, name="seed"),
    )

    def __post_init__(self):
        check_sampling(self.temperature, self.top_k, self.top_p)
        right = is_integer(self.seed) and -(2**31) <= self.seed < 2**31
        _check("seed", self.seed, right, "an integer of 32 bits")

    def values(self, numbers):  # noqa: D102
        seeds = [(self.seed, number) for number in numbers]
        return [*super().values(numbers)[:-1], tf.constant(seeds, tf.int32, [len(seeds), 2])]

    def _decode(self, predictor, source, n_best, longest, options):
        seed = self.seed
        if not tf.is_tensor(seed):
            numbers = tf.range(predictor.sizes(source)[0])  # [B]
            seed = tf.stack([tf.fill(tf.shape(numbers), seed), numbers], axis=1)  # [B, 2]
        controls = self.temperature, self.top_k, self.top_p, seed
        return sample_decode(predictor, source, *controls, cache_length=longest, **options)

    def __str__(self):
        return f"sample, temperature {self.temperature:g}"


def check_search(search, *kinds):
    """Raises unless `search` is a value of one of the `kinds`, such as `Greedy` and `Beam`."""
    if not isinstance(search, kinds):
        names = " or ".join(f"a `{kind.__name__}`" for kind in kinds)
        raise TypeError(f"`search` must be {names}. Received: search={search!r}.")


def _check(name, value, right, rule):
    if not right and not tf.is_tensor(value):
        raise ValueError(f"`{name}` must be {rule}. Received: {name}={value!r}.")


def _bounded(length):
    """A length that fits into 32 bits, also together with another one."""
    if tf.is_tensor(length):
        return length
    return UNLIMITED if length is None else min(length, UNLIMITED)
