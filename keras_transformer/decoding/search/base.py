"""`Search`, the base class of all searches, and `Found`, their result."""

import dataclasses
import typing
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.loop import limit_of
from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.search_settings import settings_of
from keras_transformer.tensors import Tensor

Kind = typing.TypeVar("Kind", bound="Search")


class Found(typing.NamedTuple):
    """Result of a search: M outputs of each sentence, the best first."""

    tokens: tf.Tensor  # [B, M, L], int32
    scores: tf.Tensor  # [B, M], float32
    complete: tf.Tensor  # [B, M], boolean: whether an output ended before its maximum length
    token_scores: tf.Tensor | None = None  # [B, M, L], float32, if requested
    alignment: tf.Tensor | None = None  # [B, M, L, S], float32, if requested
    no_speech: tf.Tensor | None = None  # [B, M], float32, see `greedy_decode`
    mean_log_probability: tf.Tensor | None = None  # [B, M], float32


@dataclasses.dataclass(frozen=True)
class Search:
    """Base class of searches, which are called with a model and the inputs of its encoder.

    Call arguments:
        model: A `Transformer`, or any other `Predictor`.
        source: Token ids `[B, S]`, integer, each row ending in `eos_id` and then padding; or the
            inputs of the predictor.
        n_best: Number of outputs M of each sentence: 1, or with a beam at most its size.
        cache_length: Maximum length L of an output in tokens, an integer. `None`: the model's
            `max_length`.
        alignment: See `greedy_decode`.
        **options: Other arguments of `greedy_decode`, `beam_decode` or `sample_decode`.

    Returns:
        `Found`.

    Raises:
        ValueError: If a setting is out of range.

    Attributes:
        inputs: The `tf.TensorSpec`s of the fields that may be tensors, named like the fields.
            One graph serves all values of these fields.
    """

    inputs: typing.ClassVar[tuple] = ()

    def __call__(
        self,
        model: typing.Any,
        source: Tensor,
        n_best: int = 1,
        cache_length: int | None = None,
        alignment: tuple[int, int | None] | None = None,
        **options: typing.Any,
    ) -> Found:
        predictor = predictor_of(model, alignment)
        longest = predictor.max_length if cache_length is None else cache_length
        self.check(predictor.vocabulary, longest, n_best)
        outputs = self._decode(predictor, source, n_best, longest, options)
        if not isinstance(outputs, dict):
            outputs = dict(zip(("tokens", "scores"), outputs, strict=True))
        if outputs["tokens"].shape.rank == 2:
            outputs = {name: tf.expand_dims(value, 1) for name, value in outputs.items()}  # M = 1
        complete = self._complete(predictor, source, outputs["tokens"], longest)
        return Found(**outputs, complete=complete)

    def _complete(self, predictor, source, tokens, longest):
        """Returns which outputs `[B, M, L]` ended before their maximum length, boolean `[B, M]`.

        Where an end is forced at the maximum length, an output of this length counts as cut.
        """
        vocabulary = predictor.vocabulary
        ended = tf.reduce_any(tf.equal(tokens, vocabulary.eos_id), axis=2)
        if vocabulary.forced_eos_id is None:
            return ended
        limits = self._limits(predictor, source, longest)
        limits = limit_of(limits, longest, tf.shape(tokens)[0], predictor, source)  # [B]
        counts = tf.reduce_sum(tf.cast(tf.not_equal(tokens, vocabulary.pad_id), tf.int32), axis=2)
        return tf.logical_and(ended, counts < tf.expand_dims(limits, 1))

    def _limits(self, predictor, source, longest):
        """Returns the maximum length of each output by the search, `[B]` or `[]`."""
        return self.limit(None, longest)

    def check(self, vocabulary: Any, longest: int, n_best: int = 1) -> None:
        """Raises `ValueError` unless the settings fit a model.

        Args:
            vocabulary: The `Vocabulary` of the model's predictor.
            longest: Maximum length of an output in tokens.
            n_best: Number of outputs of each sentence.
        """
        if n_best != 1:
            raise ValueError(
                "`n_best` must be 1 with a search that finds a single output. "
                f"Received: n_best={n_best}, search={self!r}."
            )

    @property
    def kind(self: Kind) -> Kind:
        """The search with default values of its `inputs`; searches of one kind share a graph."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return self.with_values([defaults[spec.name] for spec in self.inputs])

    def values(self, numbers: Tensor) -> list[Any]:
        """Returns the values of `inputs` for a batch.

        Args:
            numbers: List of integers, the number of each sentence, which selects its sample.
        """
        return [getattr(self, spec.name) for spec in self.inputs]

    def with_values(self: Kind, values: Sequence[Any]) -> Kind:
        """Returns the search with other values of `inputs`, numbers or tensors."""
        names = (spec.name for spec in self.inputs)
        return dataclasses.replace(self, **dict(zip(names, values, strict=True)))

    def penalty(self, tokens: Tensor) -> Tensor:
        """Returns the divisor of the log-probability of an output with this number of tokens."""
        return 1.0

    def terms(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Returns how many log-probabilities a score adds up, over the divisor of the score.

        An error of 1 in each log-probability is an error of the score of this size.

        Args:
            tokens: Number of tokens of the output.
            positions: Number of positions of the encoder.
        """
        return tokens / self.penalty(tokens)

    def limit(self, source_length: Tensor, longest: Tensor) -> Tensor:
        """Returns the maximum number of new tokens, an integer or a tensor like the arguments.

        Those with which an output begins do not count; see `output_limit`.

        Args:
            source_length: Number of tokens of the source, `eos_id` included; see
                `Predictor.lengths`.
            longest: Maximum length that the model or the cache allows.
        """
        return longest


def check_search(search, *kinds) -> None:
    """Raises `TypeError` unless `search` is an instance of one of the `kinds` of searches."""
    if not isinstance(search, kinds):
        names = " or ".join(f"a `{kind.__name__}`" for kind in kinds)
        raise TypeError(f"`search` must be {names}. Received: search={search!r}.")


def inputs_of(settings) -> tuple[tf.TensorSpec, ...]:
    """Returns the `tf.TensorSpec`s of the fields of a settings class that may be tensors."""
    dtypes = {int: tf.int32, float: tf.float32}
    return tuple(
        tf.TensorSpec(setting.shape, dtypes[setting.kind], name=name)
        for name, setting in settings_of(settings).items()
        if setting.shape is not None
    )
