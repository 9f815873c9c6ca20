"""`Search`, the base class of all searches, with the options of a call and its result, `Found`."""

import dataclasses
import numbers
import typing
from collections.abc import Sequence
from typing import Any

from keras_transformer.decoding.constraints import Constraints
from keras_transformer.decoding.limits import limits_of
from keras_transformer.decoding.loop import STAGES, check_lengths, limit_of, smaller
from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.decoding.unrolled import Unrolled
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.search_settings import UNLIMITED, is_tensor, settings_of
from keras_transformer.tensors import Tensor

Kind = typing.TypeVar("Kind", bound="Search")


class Found(typing.NamedTuple):
    """Result of a search: M outputs of each sentence, the best first.

    `tokens` are int32, each row ending in `eos_id` and then padding; without `eos_id` where the
    maximum length came first. If there are fewer than M outputs, the remaining rows are padding
    with a score of -1e9. A score is the sum of the log-probabilities of the tokens, `eos_id`
    included, which a beam divides by its length penalty. Fields that are not requested are `None`.
    """

    tokens: Tensor  # [B, M, L], int32
    scores: Tensor  # [B, M], float32
    complete: Tensor  # [B, M], boolean: whether an output ended before its maximum length
    token_scores: Tensor | None = None  # [B, M, L], float32, 0 for padding
    alignment: Tensor | None = None  # [B, M, L, S], float32, 0 for padding
    no_speech: Tensor | None = None  # [B, M], float32, see `SearchOptions.confidence`
    mean_log_probability: Tensor | None = None  # [B, M], float32


@dataclasses.dataclass(frozen=True, eq=False)
class SearchOptions:
    """Options of a call of a search, which say what it returns and how it runs.

    Args:
        n_best: Number of outputs M of each sentence: 1, or with a beam at most its size.
        cache_length: Length L of the cache and of the result in tokens, an integer. `None`: as many
            as the longest output may have if `max_length` of the search is an integer and the
            prompts are known when the graph is made, otherwise the model's `max_length`.
        constraints: `Constraints` of the outputs. With constraints, even empty ones, `pad_id` and
            `bos_id` are never emitted.
        token_scores: Whether to also return the log-probability of each token.
        alignment: A pair of integers, layer and head of the decoder: also returns the attention of
            each token to the source. `None` in place of the head: the mean of all heads. A
            predictor with attention weights always returns them.
        confidence: Whether to also return numbers that tell whether an output is invented, as in
            Whisper: the probability that the inputs contain no speech, if the vocabulary has a
            `no_speech_id`; and the mean log-probability of the tokens after the prompt among those
            that the rules of the model allow.
        cache_stages: Cache sizes to grow through, in positions: the cost of a step then depends on
            the actual length of the outputs. For a beam that drops unused entries, a size of L has
            room for as many entries as L positions have; sizes that are too close are left out.
            Empty: one loop instead of several, a smaller graph.
            `None`: the cache grows while the search runs, so that the memory also depends on the
            actual length; neither XLA nor LiteRT can compile this. `"each"`: the same, by each
            position, in a single loop; for ONNX. An `Unrolled`: a single step without a loop, for
            a program that repeats it.
        compact: Whether a beam drops the entries of its cache that no hypothesis attends to any
            more, if it can. It does not affect the result. A runtime that copies what a loop reads
            may need more memory for it.
        sizes: Size of the beam for each sentence, integer tensor `[B]` of values from 1 to the
            `size` of the `Beam`. A sentence gets the result of a beam of its size, which is at most
            that many outputs; the time is the same as for the whole beam. `None`: `size` for all.
        early_stopping: Whether the search of a sentence is also done when no running hypothesis of
            its beam can still be among the best M. Without it the result is the same but takes
            longer. Ignored with `stopping="score"`.
    """

    n_best: int = 1
    cache_length: int | None = None
    constraints: Constraints | None = None
    token_scores: bool = False
    alignment: tuple[int, int | None] | None = None
    confidence: bool = False
    cache_stages: Sequence[int] | str | Unrolled | None = STAGES
    compact: bool = True
    sizes: Tensor | None = None
    early_stopping: bool = True


@dataclasses.dataclass(frozen=True)
class Search:
    """Base class of searches, which are called with a model and the inputs of its encoder.

    The search is a loop in the graph, whose cache has a fixed size in each stage: it works eagerly,
    in a `tf.function`, under XLA, in a SavedModel and in LiteRT. The result of a sentence does not
    depend on the others in its batch.

    Call arguments:
        model: A `Transformer`, or any `Predictor`, such as an `Ensemble`.
        source: Token ids `[B, S]`, integer, each row ending in `eos_id` and then padding; or the
            inputs of the predictor.
        options: The `SearchOptions`.

    Returns:
        `Found`.

    Raises:
        TypeError: If `options` are no `SearchOptions`.
        ValueError: If a setting or an option is out of range, or an option has no effect on the
            search.

    Attributes:
        unused: Names of the `SearchOptions` that have no effect on the search.
        takes_terms: Whether the `terms` of `Constraints` have an effect on the search.
    """

    unused: typing.ClassVar[tuple] = ("sizes", "compact")
    takes_terms: typing.ClassVar[bool] = False

    def __call__(
        self, model: Any, source: Tensor, options: SearchOptions = SearchOptions()
    ) -> Found:
        if not isinstance(options, SearchOptions):
            raise TypeError(f"`options` must be `SearchOptions`. Received: options={options!r}.")
        for name in self.unused:
            if getattr(options, name) is not getattr(SearchOptions, name):
                raise ValueError(
                    f"`{name}` has no effect with `{type(self).__name__}`. "
                    f"Received: {name}={getattr(options, name)!r}."
                )
        self._check_terms(options)
        predictor = predictor_of(model, options.alignment)
        length = self._length(predictor, source, options.cache_length)
        self.check(predictor.vocabulary, length, options.n_best)
        outputs = self._outputs(predictor, source, length, options)
        complete = self._complete(predictor, source, outputs["tokens"], length)
        return Found(**outputs, complete=complete)

    def _check_terms(self, options):
        """Raises `ValueError` if the search, or the sizes of its beam, cannot hold terms."""
        if options.constraints is None or options.constraints.terms is None:
            return
        if not self.takes_terms:
            raise ValueError(
                "`terms` of `Constraints` need a `Beam`, which keeps hypotheses with and without "
                f"them. Received: search={self!r}."
            )
        if options.sizes is not None:
            raise ValueError("`sizes` has no effect with `terms` of `Constraints`: leave out one.")

    def _length(self, predictor, source, cache_length):
        """Returns the length L of the result."""
        longest, limit = predictor.max_length, getattr(self, "max_length", None)
        if cache_length is not None:
            return check_lengths(longest, cache_length=cache_length)
        if not isinstance(limit, numbers.Integral):
            return longest
        beginning = predictor.beginning_lengths(source)
        if tf.is_tensor(beginning):
            beginning = tf.get_static_value(beginning)
            beginning = longest if beginning is None else int(beginning.max(initial=0))
        return min(limit + beginning, longest)

    def _run(self, predictor, source, length, options):
        """Returns the outputs of the loop as a dictionary; see `_outputs`."""
        raise NotImplementedError

    def _outputs(self, predictor, source, length, options):
        """Returns the outputs as a dictionary of the fields of `Found` except `complete`."""

        def search(predictor, constraints):
            asked = dataclasses.replace(options, constraints=constraints)
            return self._run(predictor, source, length, asked)

        return predictor.searched(search, source, options.constraints)

    def _complete(self, predictor, source, tokens, longest):
        """Returns which outputs `[B, M, L]` ended before their maximum length, boolean `[B, M]`.

        Where an end is forced at the maximum length, an output of this length counts as cut.
        """
        vocabulary = predictor.vocabulary
        ended = tf.reduce_any(tf.equal(tokens, vocabulary.eos_id), axis=2)
        if vocabulary.rules.forced_eos_id is None:
            return ended
        limits = self._limits(predictor, source, longest)
        limits = limit_of(limits, longest, tf.shape(tokens)[0], predictor, source)  # [B]
        counts = tf.reduce_sum(tf.cast(tf.not_equal(tokens, vocabulary.pad_id), tf.int32), axis=2)
        return tf.logical_and(ended, counts < tf.expand_dims(limits, 1))

    def _limits(self, predictor, source, longest):
        """Returns the maximum length of each output by the search, `[B]` or `[]`."""
        return self.limit(self._source_lengths(predictor, source), longest)

    def _source_lengths(self, predictor, source):
        """Returns the lengths of the sources that limit outputs, `[B]`, or `None`."""
        ratio = getattr(self, "max_length_ratio", None)
        return predictor.lengths(source) if ratio is not None and predictor.has_source else None

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
        self._check_ratio(vocabulary)

    def _check_ratio(self, vocabulary):
        ours, theirs = getattr(self, "max_length_ratio", None), vocabulary.rules.max_length_ratio
        if ours is not None and theirs is not None and ours > theirs:
            raise ValueError(
                "`max_length_ratio` of a search must be at most that of the model, which always "
                f"limits outputs. Received: {ours} and {theirs}."
            )

    @property
    def inputs(self) -> "tuple[tf.TensorSpec, ...]":
        """The `tf.TensorSpec`s of the fields that a graph takes, named like the fields.

        One graph serves all values of these fields. A field with a `placeholder` is none of them
        at its default, which costs no time.
        """
        known = settings_of(self)
        idle = {
            field.name
            for field in dataclasses.fields(self)
            if field.name in known
            and known[field.name].placeholder is not None
            and is_idle(getattr(self, field.name), field.default)
        }
        return tuple(spec for spec in inputs_of(self) if spec.name not in idle)

    @property
    def kind(self: Kind) -> Kind:
        """The search that stands for all values of `inputs`; those of one kind share a graph."""
        known = settings_of(self)
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        placeholders = {name: setting.placeholder for name, setting in known.items()}
        names = [spec.name for spec in self.inputs]
        return self.with_values(
            [defaults[n] if placeholders[n] is None else placeholders[n] for n in names]
        )

    def values(self, numbers: Tensor) -> list[Any]:
        """Returns the values of `inputs` for a batch.

        Args:
            numbers: List of integers, the number of each sentence, which selects its sample.
        """
        return self._values()

    def _values(self):
        """Returns the values of `inputs`; a length that is `None` is longer than any output."""
        known = settings_of(self)
        values = [(known[spec.name], getattr(self, spec.name)) for spec in self.inputs]
        return [bounded(value) if setting.is_optional else value for setting, value in values]

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
        limit = smaller(getattr(self, "max_length", None), longest)
        by_source = self._by_source(source_length, longest)
        return limit if by_source is None else smaller(by_source, limit)

    def _by_source(self, source_length, longest):
        """Returns the maximum number of new tokens by the length of a source, or `None`."""
        ratio = getattr(self, "max_length_ratio", None)
        if ratio is None:
            return None
        if source_length is None:
            raise ValueError(
                "`max_length_ratio` needs a source in tokens, which limits the length of an "
                f"output. Received: search={self!r}."
            )
        return limits_of(source_length, ratio, longest)


def check_search(search, *kinds) -> None:
    """Raises `TypeError` unless `search` is an instance of one of the `kinds` of searches."""
    if not isinstance(search, kinds):
        names = " or ".join(f"a `{kind.__name__}`" for kind in kinds)
        raise TypeError(f"`search` must be {names}. Received: search={search!r}.")


def is_idle(value, default) -> bool:
    """Returns whether a setting has its default; a tensor may have any value."""
    return not is_tensor(value) and value == default


def bounded(length) -> Any:
    """Returns a length, limited so that the sum of two lengths fits into 32 bits."""
    if is_tensor(length):
        return length
    return UNLIMITED if length is None else min(length, UNLIMITED)


def inputs_of(settings) -> "tuple[tf.TensorSpec, ...]":
    """Returns the `tf.TensorSpec`s of the fields of a settings class that may be tensors."""
    dtypes = {int: tf.int32, float: tf.float32}
    return tuple(
        tf.TensorSpec(setting.shape, dtypes[setting.kind], name=name)
        for name, setting in settings_of(settings).items()
        if setting.shape is not None
    )
