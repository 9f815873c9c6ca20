"""Beam search with a key/value cache (section 6.1)."""

import dataclasses
import numbers
import typing
from typing import Any

from keras_transformer.checks import check_count
from keras_transformer.decoding.blocks import Blocks
from keras_transformer.decoding.compact_caches import compacted
from keras_transformer.decoding.constraints import Constraints, with_rules_of
from keras_transformer.decoding.endings import Endings, EndingsWithTerms
from keras_transformer.decoding.hypotheses import (
    NONE,
    BeamState,
    Rows,
    among_the_best,
    best_continuations,
    best_of_both,
    count_of,
    empty_rows,
    exists,
    no_scores,
    ranked,
    write,
)
from keras_transformer.decoding.loop import (
    cache_of,
    check_lengths,
    limit_of,
    mean_of_sums,
    outputs_of,
    reads_prompts,
)
from keras_transformer.decoding.predictor import Predictor, pick
from keras_transformer.decoding.prompts import Beginning, prompts_of
from keras_transformer.decoding.repetition import Repetition
from keras_transformer.decoding.rules import Rules
from keras_transformer.decoding.search import Search, SearchOptions, bounded
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.search_settings import (
    NORMALIZATIONS,
    BeamSettings,
)
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class Beam(BeamSettings, Search):
    """Keeps the `size` most probable hypotheses at each step; ranks finished ones by score.

    The score of a hypothesis of `n` tokens, `eos_id` included, is the sum of their
    log-probabilities, divided by `((5 + n) / 6) ** length_penalty` (`"gnmt"`), by
    `n ** length_penalty` (`"power"`), by `n` (`"average"`) or by nothing (`"none"`); the
    tokens of the model's `prompt_ids` do not count, but those of a language model's prompt do, as
    in CTranslate2 and unlike `generate` of `transformers`. A hypothesis finishes when its `eos_id`
    is among the best `size` continuations of all hypotheses. The search of a sentence is done when
    `size` hypotheses have finished or the maximum length is reached. Hypotheses cut there rank
    after all finished ones. `pad_id` and `bos_id` are never emitted. The hypotheses of a sentence
    are distinct. A beam of 1 returns the result of `Greedy`. The defaults are the paper's.

    With `stopping="score"` the search continues after that. It keeps the best `size` finished
    hypotheses, and is done when the score of the best running hypothesis, divided by its current
    length, is not above the lowest of their scores. Hypotheses cut at the maximum length rank by
    their scores among the finished ones. This is the beam search of Hugging Face's
    `generate(early_stopping=False)`.

    With `stopping="narrow"` the beam shrinks by one for every finished hypothesis, and the search
    is done when no hypothesis is running. Hypotheses cut at the maximum length rank by their scores
    among the finished ones. This is Marian's beam search.

    Args:
        size: Number of running hypotheses N.
        length_penalty: Exponent of `"gnmt"` and `"power"`, at least 0: number, or tensor, scalar or
            `[B]`.
        normalization: Divisor of the scores: `"gnmt"`, `"power"`, `"average"` or `"none"`.
        min_length: Minimum number of new tokens, counted like `max_length`: integer, or tensor,
            scalar or `[B]`. Constraints can force an earlier end.
        extra_length: Number of tokens by which the new part of an output may be longer than its
            source, whose end counts: integer, or tensor. For a language model, it may be longer
            than the end alone. `None`: no limit. It has no effect if the predictor reports no
            lengths of sources, see `Predictor.lengths`.
        max_length: See `Greedy`.
        max_length_ratio: See `Greedy`. `extra_length` is added to the product; then `None` adds
            nothing.
        stopping: End of the search of a sentence: `"count"`, `"score"` or `"narrow"`.
        repetition_penalty: Factor of the log-probabilities of all tokens that the decoder has read,
            see `Greedy`. Scores include it, as in `transformers`. There, a beam penalises
            log-probabilities and greedy search logits, so that with a penalty a beam of 1 may
            differ from `Greedy`.

    Raises:
        TypeError: If `size` is not an integer.
        ValueError: If a setting is out of range or unknown. When called, also raised if the
            vocabulary has fewer tokens than the beam has hypotheses, or the cache or `max_length`
            is shorter than `min_length`.

    Example:
        >>> from keras_transformer import Beam, Transformer, TransformerConfig
        >>> from keras_transformer.decoding import SearchOptions
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> Beam(4, max_length=5)(model, [[7, 8, 3]], SearchOptions(n_best=2)).tokens.shape
        TensorShape([1, 2, 5])

    Reference: Vaswani et al. (2017), section 6.1; the penalty is Eq. 14 of Wu et al. (2016),
        "Google's Neural Machine Translation System", without coverage.
    """

    unused: typing.ClassVar[tuple] = ()
    takes_terms: typing.ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("size", self.size)
        super().__post_init__()

    def check(self, vocabulary: Any, longest: int, n_best: int = 1) -> None:  # noqa: D102
        if not 1 <= n_best <= self.size:
            raise ValueError(
                "`n_best` must be between 1 and `size`. "
                f"Received: n_best={n_best}, size={self.size}."
            )
        if self.size > vocabulary.size:
            raise ValueError(
                f"`size` must be at most the vocabulary's number of tokens, {vocabulary.size}. "
                f"Received: size={self.size}."
            )
        if isinstance(self.max_length, numbers.Integral):
            longest = min(longest, self.max_length)
        check_lengths(longest, self.min_length)
        self._check_ratio(vocabulary)

    def values(self, numbers: Tensor) -> list[Any]:  # noqa: D102
        if self.max_length_ratio is None or self.extra_length is not None:
            return super().values(numbers)
        return dataclasses.replace(self, extra_length=0).values(numbers)  # see `limit`

    def penalty(self, tokens: Tensor) -> Tensor:  # noqa: D102
        return NORMALIZATIONS[self.normalization](tokens, self.length_penalty)

    def limit(self, source_length: Tensor, longest: Tensor) -> Tensor:  # noqa: D102
        by_source, extra = self._by_source(source_length, longest), self.extra_length
        if by_source is None:
            by_source = source_length + bounded(extra)
        elif extra is not None:
            by_source = by_source + bounded(extra)
        wanted = tf.minimum(bounded(self.max_length), by_source)
        return tf.minimum(tf.maximum(wanted, self.min_length), longest)

    def _limits(self, predictor, source, longest):
        if self.max_length_ratio is not None:
            return self.limit(self._source_lengths(predictor, source), longest)
        lengths = None if self.extra_length is None else predictor.lengths(source)  # [B]
        if lengths is None:
            return dataclasses.replace(self, extra_length=None).limit(0, longest)
        return self.limit(lengths, longest)

    def _run(self, predictor, source, length, options):
        step = self._step(predictor, source, length, options)
        cache, prompts = cache_of(length, options.cache_stages, predictor), None
        if reads_prompts(cache, predictor):
            prompts = prompts_of(predictor, source, length, step.limit, step.rules)
        if options.compact and prompts is None and self.size > 1 and predictor.compacts:
            cache = compacted(cache)
        state = predictor.begin(source, cache.first(prompts), self.size)
        read = None if prompts is None else prompts.read(predictor, state)
        no_speech = predictor.no_speech(state) if options.confidence else None
        state = step.beginning(*predictor.sizes(source), state, read)
        state = cache.run(predictor, step.running, step, state, read)
        rows, scores = tf.nest.map_structure(
            lambda value: value[:, : options.n_best], step.results(state)
        )
        attention = step.attended(rows, state.attention)
        mean = ()
        if options.confidence:
            mean = mean_of_sums(rows.sums, rows.tokens, predictor.vocabulary, step.begun.count)
        if no_speech is not None:  # the same for each hypothesis, [B, M]
            no_speech = tf.repeat(tf.expand_dims(no_speech, 1), options.n_best, axis=1)
        return outputs_of(rows.tokens, scores, rows.token_scores, attention, no_speech, mean)

    def _step(self, predictor, source, length, options):
        """Returns the body of the loop with its constants."""
        vocabulary = predictor.vocabulary
        constraints = with_rules_of(vocabulary, options.constraints)
        repetition = Repetition.of(self, vocabulary)
        if constraints is None and not (repetition is None and predictor.prompts(source) is None):
            constraints = Constraints()  # prompts may contain tokens that are never emitted
        begun = Beginning.of(vocabulary, source)
        batch, _ = predictor.sizes(source)
        limit = limit_of(self._limits(predictor, source, length), length, batch, predictor, source)
        counts = tf.reshape(predictor.beginning_lengths(source), [-1, 1])  # [B or 1, 1]
        shortest = tf.reshape(tf.cast(self.min_length, tf.int32), [-1, 1]) + counts
        sizes = options.sizes
        return BeamStep(
            self,
            options,
            predictor,
            begun,
            length,
            limit=limit,
            shortest=tf.minimum(shortest, tf.expand_dims(limit, 1)),  # [B, 1]
            rules=None if constraints is None else Rules(constraints, vocabulary, length, begun),
            used=None if sizes is None else tf.reshape(tf.cast(sizes, tf.int32), [-1, 1]),
            repetition=repetition,
        )

    def __str__(self) -> str:
        penalty = f" {self.length_penalty:g}" if self.has_exponent else ""
        stopping = {"count": "", "score": ", stopped by score", "narrow": ", narrowing"}
        return f"beam {self.size}, {self.normalization}{penalty}{stopping[self.stopping]}"


@dataclasses.dataclass(frozen=True)
class BeamStep:
    """The body of the search loop with its constants: it extends N hypotheses by a token each.

    Args:
        beam: The `Beam`.
        options: The `SearchOptions`.
        predictor: A `Predictor`.
        begun: The `Beginning` of the outputs.
        length: Length of the result L.
        limit: Maximum length of the output of each sentence, `[B]`.
        shortest: Minimum length of an output, `[B, 1]` or `[1, 1]`.
        rules: `Rules`, or `None`.
        used: `SearchOptions.sizes` as `[B, 1]`.
        repetition: The `Repetition`. `None`: no token is penalised.

    Call arguments:
        state: A `BeamState`.
    """

    beam: Beam
    options: SearchOptions
    predictor: Predictor
    begun: Beginning
    length: int
    limit: "tf.Tensor"
    shortest: "tf.Tensor"
    rules: Rules | None
    used: "tf.Tensor | None" = None
    repetition: Repetition | None = None

    @property
    def by_score(self) -> bool:
        """`True` if the search of a sentence stops by score instead of by count."""
        return self.beam.stopping == "score"

    @property
    def narrowing(self) -> bool:
        """`True` if the beam shrinks by one for every finished hypothesis."""
        return self.beam.stopping == "narrow"

    def beginning(self, batch, positions, predictor_state, read=None) -> BeamState:
        """Returns the state before the first step; for B and S see `Predictor.sizes`.

        With `read`, the `ReadPrompts`, it is the state after the tokens that have been read.
        """
        size, length, vocabulary = self.beam.size, self.length, self.predictor.vocabulary
        kept = size if self.by_score else self.options.n_best
        of_rows = {
            "length": length,
            "pad_id": vocabulary.pad_id,
            "token_scores": self.options.token_scores,
            "places": positions is not None,
            "sums": self.options.confidence,
        }
        # Start with one hypothesis: N equal ones would have N times the same continuations.
        scores = tf.where(tf.equal(tf.range(size), 0), 0.0, no_scores(batch, size))
        state = BeamState(
            index=tf.constant(0),
            last=tf.fill([batch, size], vocabulary.bos_id),
            rows=empty_rows(batch, size, **of_rows),
            scores=scores,
            predictor_state=predictor_state,
            ended_rows=empty_rows(batch, kept, **of_rows),
            ended_scores=no_scores(batch, kept),
            ended_count=tf.zeros([batch], tf.int32),
            done=tf.zeros([batch], tf.bool),
            runs=() if self.rules is None else self.rules.start(batch, size),
            attention=() if positions is None else tf.zeros([batch, length, size, positions]),
        )
        if read is None:
            return state
        tokens = tf.repeat(tf.expand_dims(read.tokens, 1), size, axis=1)  # [B, N, L]
        return state._replace(
            index=read.count,
            last=tf.repeat(tf.expand_dims(read.last, 1), size, axis=1),
            rows=state.rows._replace(tokens=tokens),
        )

    def running(self, state) -> Tensor:
        """Returns `True` while the search of any sentence is not done."""
        return tf.logical_not(tf.reduce_all(state.done))

    def __call__(self, state) -> tuple[BeamState]:  # noqa: D102
        here = tf.equal(tf.range(self.length), state.index)  # [L]
        places = tf.expand_dims(tf.range(self.beam.size), 0)  # [1, N]
        rows = state.rows._replace(places=write(state.rows.places, here, places))
        vocabulary = self.predictor.vocabulary
        step = self.predictor.step(state.last, state.predictor_state, state.index)
        first, last = tf.equal(state.index, 0), state.index + 1 >= self.limit
        banned = None if self.rules is None else self.rules.banned

        def forced(logits):
            return vocabulary.with_forced(logits, first, last, self.begun.detects, banned)

        logits = forced(step.logits)
        candidates = logits if self.repetition is None else forced(self._penalised(step, state))
        best = best_continuations(
            logits,
            self._allowed(candidates, state),
            state.scores,
            vocabulary,
            self.predictor.log_sum_exp,
            gains=not isinstance(rows.token_scores, tuple),
            among=not isinstance(rows.sums, tuple),
            banks=self._endings.banks(state, self._size(state)),
        )
        best = self._frozen(best, state)
        attention = _attended(state.attention, here, step.weights)
        state = self._collect_ended(state, rows, best, here)
        if self.narrowing:
            kept = tf.range(self.beam.size) < self._size(state)  # [B, N]
            best = best._replace(scores=tf.where(kept, best.scores, NONE))
        best = self._endings.in_order(best)
        state = self._go_on(state, rows, best, here)
        if self.by_score:
            state = self._collect_cut(state, best.ends)
        state = state._replace(
            index=state.index + 1,
            predictor_state=self.predictor.follow(step.state, best.parents),
            attention=attention,
        )
        return (state._replace(done=tf.logical_or(state.done, self._over(state))),)

    @property
    def _endings(self):
        rules = self.rules
        if rules is None or rules.terms is None:
            return Endings()
        return EndingsWithTerms(rules.terms, rules.begun)

    def _penalised(self, step, state):
        """Returns the logits `[B, N, V]` after the penalty of the log-probabilities."""
        logits = tf.cast(step.logits, tf.float32)
        total = self.predictor.log_sum_exp(Blocks(logits))  # [B, N, 1]
        repetition: Any = self.repetition
        seen = repetition.seen(state.rows.tokens, tf.range(self.length) < state.index)
        return repetition.of_log_probabilities(logits, seen, total)

    def _may_end(self, state):
        return state.index + 1 >= self.shortest  # [B or 1, 1]

    def _allowed(self, logits, state):
        """Returns the logits with `NEVER` for forbidden tokens; `None` without constraints."""
        if self.rules is None:
            return None
        return self.rules.apply(
            logits, state.rows.tokens, state.runs, state.index, self._may_end(state)
        )

    def _frozen(self, best, state):
        """Returns the continuations; in a sentence that is done, hypotheses stay unchanged."""
        done = tf.expand_dims(state.done, 1)  # [B, 1]
        ends = best.ends
        if self.rules is None:  # otherwise `_allowed` has applied the minimum length
            ends = tf.where(self._may_end(state), ends, NONE)
        return best._replace(
            scores=tf.where(done, state.scores, self._used(best.scores)),
            parents=tf.where(done, tf.range(self.beam.size), best.parents),
            tokens=tf.where(done, self.predictor.vocabulary.pad_id, best.tokens),
            ends=tf.where(done, NONE, ends),
            among=tf.nest.map_structure(lambda gains: tf.where(done, 0.0, gains), best.among),
        )

    def _collect_ended(self, state, rows, best, here):
        """Adds the hypotheses that end at this position and are good enough to `ended_rows`."""
        ends = self._endings.ends(best, state, self._size(state))  # [B, N]
        rows = rows._replace(
            tokens=tf.where(here, self.predictor.vocabulary.eos_id, rows.tokens),
            token_scores=write(rows.token_scores, here, best.end_gains),
            sums=_added(rows.sums, best.end_among),
        )
        ended_rows, ended_scores = best_of_both(
            (state.ended_rows, rows),
            (state.ended_scores, self._normalize(ends, state.index + 1)),
        )  # [B, M, L], [B, M]
        ended_count = state.ended_count + count_of(exists(ends))  # [B]
        return state._replace(
            ended_rows=ended_rows, ended_scores=ended_scores, ended_count=ended_count
        )

    def _size(self, state):
        """Returns the current beam size of each sentence, `[]` or `[B, 1]`."""
        size = self.beam.size if self.used is None else self.used
        return size - tf.expand_dims(state.ended_count, 1) if self.narrowing else size

    def _go_on(self, state, rows, best, here):
        """Replaces the hypotheses by their best continuations."""
        rows, runs = pick((rows, state.runs), best.parents)
        if self.rules is not None:
            runs = self.rules.follow(runs, rows.tokens, best.tokens, state.index)
        rows = rows._replace(
            tokens=write(rows.tokens, here, best.tokens),
            token_scores=write(rows.token_scores, here, best.gains),
            sums=_added(rows.sums, best.among),
        )
        return state._replace(last=best.tokens, rows=rows, scores=best.scores, runs=runs)

    def _collect_cut(self, state, ends):
        """Adds the best running hypotheses to `ended_rows`, unfinished, at the maximum length."""
        size = self.beam.size if self.used is None else self.used
        last = tf.logical_and(state.index + 1 >= self.limit, tf.logical_not(state.done))  # [B]
        last = self._endings.returnable(tf.expand_dims(last, 1), state)  # [B, 1 or N]
        scores = tf.where(last, among_the_best(state.scores, ends, size), NONE)  # [B, N]
        ended_rows, ended_scores = best_of_both(
            (state.ended_rows, state.rows),
            (state.ended_scores, self._normalize(scores, state.index + 1)),
        )
        scores = tf.where(last, NONE, state.scores)
        return state._replace(ended_rows=ended_rows, ended_scores=ended_scores, scores=scores)

    def _over(self, state):
        """Returns the mask of the sentences whose search is done, `[B]`."""
        if self.by_score:
            attained = self._normalize(state.scores[:, :1], state.index)  # [B, 1]
            over = tf.squeeze(self._last(state.ended_scores) >= attained, 1)
            return tf.logical_or(state.index >= self.limit, over)
        size = self.beam.size if self.used is None else tf.squeeze(self.used, 1)
        over = tf.logical_or(state.index >= self.limit, state.ended_count >= size)
        # Sums of log-probabilities can only fall, and the penalty is largest at the limit.
        if self.options.early_stopping:
            attainable = self._normalize(state.scores[:, :1], tf.expand_dims(self.limit, 1))
            last = self._last(state.ended_scores) >= attainable  # [B, 1]
            over = tf.logical_or(over, tf.squeeze(last, 1))
        return over

    def _last(self, ended_scores):
        """Returns the lowest score among the hypotheses to return, `[B, 1]`."""
        if self.used is None:
            return ended_scores[:, -1:]
        last = tf.minimum(self.used, ended_scores.shape[1]) - 1  # [B, 1]
        return tf.gather(ended_scores, last, batch_dims=1)

    def _used(self, scores):
        """Returns sorted scores `[B, N]`, with `NONE` beyond the beam size of each sentence."""
        if self.used is None:
            return scores
        return tf.where(tf.range(scores.shape[1]) < self.used, scores, NONE)

    def results(self, state) -> tuple[Rows, Tensor]:
        """Returns the best M hypotheses: `Rows` of `[B, M, L]`, and scores `[B, M]`."""
        cut = self._normalize(state.scores, tf.expand_dims(self.limit, 1))  # [B, N]
        running, cut = self._endings.cut(cut, state)
        rows = (state.ended_rows, running)
        merged = best_of_both if self.narrowing else ranked
        rows, scores = merged(rows, (state.ended_scores, cut))
        scores = self._used(scores)
        pad_id = self.predictor.vocabulary.pad_id
        tokens = tf.where(exists(tf.expand_dims(scores, 2)), rows.tokens, pad_id)
        if isinstance(rows.token_scores, tuple):
            return rows._replace(tokens=tokens), scores
        token_scores = tf.where(tf.equal(tokens, pad_id), 0.0, rows.token_scores)
        return rows._replace(tokens=tokens, token_scores=token_scores), scores

    def attended(self, rows, attention) -> Tensor:
        """Returns the attention weights of the returned tokens, `[B, M, L, S]`, or `()`."""
        if isinstance(attention, tuple):
            return ()
        places = tf.transpose(rows.places, [0, 2, 1])  # [B, L, M]
        chosen = tf.gather(attention, places, batch_dims=2)  # [B, L, M, S]
        real = tf.not_equal(tf.expand_dims(rows.tokens, 3), self.predictor.vocabulary.pad_id)
        return tf.where(real, tf.transpose(chosen, [0, 2, 1, 3]), 0.0)

    def _normalize(self, scores, length):
        """Returns the scores over the divisor for a length, `[]` or `[B, 1]`.

        The tokens of a prompt do not count.
        """
        prompt = self.begun.count  # an integer or [B, 1]
        if not (isinstance(prompt, int) and not prompt):
            length = tf.maximum(length - prompt, 1)
        exponent = tf.cast(self.beam.length_penalty, tf.float32)
        if exponent.shape.rank == 1:
            exponent = tf.expand_dims(exponent, 1)  # [B, 1]
        divisor = NORMALIZATIONS[self.beam.normalization](tf.cast(length, tf.float32), exponent)
        return tf.where(exists(scores), scores / divisor, NONE)


def _added(sums, gains):
    """Returns the sums of both, or `()` if they are not requested."""
    return () if isinstance(sums, tuple) else sums + gains


def _attended(attention, here, weights):
    """Returns the attention `[B, L, N, S]` with the weights `[B, N, S]` of this position added."""
    if isinstance(attention, tuple):
        return ()
    here = tf.reshape(here, [-1, 1, 1])  # [L, 1, 1]
    return tf.where(here, tf.expand_dims(weights, 1), attention)
