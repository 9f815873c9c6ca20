"""The loop of greedy search and sampling, which follow one hypothesis."""

import dataclasses
import numbers
import typing

from keras_transformer.decoding.blocks import Blocks
from keras_transformer.decoding.constraints import with_rules_of
from keras_transformer.decoding.loop import (
    cache_of,
    limit_of,
    limits_by_source,
    mean_of_sums,
    outputs_of,
    reads_prompts,
)
from keras_transformer.decoding.predictor import Predictor
from keras_transformer.decoding.prompts import Beginning, prompts_of
from keras_transformer.decoding.repetition import Repetition
from keras_transformer.decoding.rules import Rules
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


class SingleState(typing.NamedTuple):
    """The state of the loop between two steps."""

    index: "tf.Tensor"  # number of tokens of every sentence that has not ended
    last: "tf.Tensor"  # [B], last token of each
    ended: "tf.Tensor"  # [B]
    tokens: "tf.Tensor"  # [B, L]
    scores: "tf.Tensor"  # [B], sums of log-probabilities
    predictor_state: typing.Any  # see `Predictor`
    runs: "tf.Tensor"  # [B, 1, L], see `Rules.follow`; () without rules
    token_scores: "tf.Tensor"  # [B, L]; () if not requested
    attention: "tf.Tensor"  # [B, L, S]; () if the predictor has no weights
    sums: "tf.Tensor"  # [B], of log-probabilities among allowed tokens; () if not requested


def search_single(
    predictor, inputs, choose, limit, length, options, repetition=None
) -> dict[str, Tensor]:
    """Emits one token at a time until every sentence has ended.

    Args:
        predictor: A `Predictor`.
        inputs: See `Predictor.begin`.
        choose: Function from the `Blocks` of the logits `[B, V]`, `NEVER` for forbidden tokens, and
            the number of the step to the next token `[B]` and its logit `[B]`.
        limit: Maximum number of new tokens, an integer or a tensor, scalar or `[B]`.
        length: Length of the result L.
        options: The `SearchOptions`.
        repetition: The `Repetition`. `None`: no token is penalised.

    Returns:
        See `outputs_of`.
    """
    constraints = with_rules_of(predictor.vocabulary, options.constraints)
    batch, positions = predictor.sizes(inputs)
    cache = cache_of(length, options.cache_stages, predictor)
    vocabulary = predictor.vocabulary
    beginning = Beginning.of(vocabulary, inputs)
    loop = SingleLoop(
        predictor=predictor,
        choose=choose,
        length=length,
        limit=_limit(limit, length, batch, predictor, inputs),
        rules=None if constraints is None else Rules(constraints, vocabulary, length, beginning),
        detects=beginning.detects,
        options=options,
        repetition=repetition,
    )
    limit = length if loop.limit is None else loop.limit
    prompts = None
    if reads_prompts(cache, predictor):
        prompts = prompts_of(predictor, inputs, length, limit, loop.rules)
    state = predictor.begin(inputs, cache.first(prompts))
    read = None if prompts is None else prompts.read(predictor, state)
    no_speech = predictor.no_speech(state) if options.confidence else None
    state = loop.beginning(batch, positions, state, read)
    state = cache.run(predictor, loop.running, loop.step, state, read)
    mean = ()
    if options.confidence:
        mean = mean_of_sums(state.sums, state.tokens, vocabulary, beginning.count)
    outputs = outputs_of(
        state.tokens, state.scores, state.token_scores, state.attention, no_speech, mean
    )
    return {name: tf.expand_dims(value, 1) for name, value in outputs.items()}  # M = 1


@dataclasses.dataclass(frozen=True)
class SingleLoop:
    """Condition and body of the loop, with its constants.

    Args:
        predictor, choose, length, options, repetition: See `search_single`.
        limit: Maximum length of each output, `[B]`. `None`: the length of the result.
        rules: The `Rules`, or `None`.
        detects: See `Beginning`.
    """

    predictor: Predictor
    choose: typing.Callable
    length: int
    limit: "tf.Tensor | None"
    rules: Rules | None
    detects: bool
    options: typing.Any  # the `SearchOptions`
    repetition: Repetition | None = None

    def beginning(self, batch, positions, predictor_state, read=None) -> SingleState:
        """Returns the state before the first step; for B and S see `Predictor.sizes`.

        With `read`, the `ReadPrompts`, it is the state after the tokens that have been read.
        """
        length, vocabulary = self.length, self.predictor.vocabulary
        state = SingleState(
            index=tf.constant(0),
            last=tf.fill([batch], vocabulary.bos_id),
            ended=tf.zeros([batch], tf.bool),
            tokens=tf.fill([batch, length], vocabulary.pad_id),
            scores=tf.zeros([batch], tf.float32),
            predictor_state=predictor_state,
            runs=() if self.rules is None else self.rules.start(batch, 1),
            token_scores=tf.zeros([batch, length], tf.float32) if self.options.token_scores else (),
            attention=() if positions is None else tf.zeros([batch, length, positions]),
            sums=tf.zeros([batch], tf.float32) if self.options.confidence else (),
        )
        if read is None:
            return state
        return state._replace(index=read.count, last=read.last, tokens=read.tokens)

    def running(self, state) -> Tensor:
        """Returns `True` while any sentence has not ended."""
        return tf.logical_not(tf.reduce_all(state.ended))

    def step(self, state) -> tuple[SingleState]:
        """Emits one token in each sentence that has not ended."""
        index, ended, vocabulary = state.index, state.ended, self.predictor.vocabulary
        step = self.predictor.step(tf.expand_dims(state.last, 1), state.predictor_state, index)
        limit = self.length if self.limit is None else self.limit
        first, last = tf.equal(index, 0), index + 1 >= limit
        banned = None if self.rules is None else self.rules.banned

        def forced(logits):
            return vocabulary.with_forced(logits, first, last, self.detects, banned)  # [B, 1, V]

        wide = candidates = forced(step.logits)
        logits = penalised = Blocks(tf.squeeze(wide, 1))  # of [B, V]
        if self.repetition is not None:
            before = tf.range(self.length) < index  # [L]
            seen = self.repetition.seen(tf.expand_dims(state.tokens, 1), before)
            candidates = forced(self.repetition.of_logits(step.logits, seen))
            penalised = Blocks(tf.squeeze(candidates, 1))
        allowed = self._allowed(candidates, penalised, state)
        best, chosen = self._choose(allowed, index)  # [B] each
        logit = chosen
        if self.repetition is not None:  # scores are the model's own
            logit = tf.gather(logits.values, best, batch_dims=1)
        gain = tf.cast(logit - tf.squeeze(self.predictor.log_sum_exp(logits), 1), tf.float32)  # [B]
        gain = tf.where(ended, 0.0, gain)
        token = tf.where(ended, vocabulary.pad_id, best)
        here = tf.equal(tf.range(self.length), index)  # [L]
        over = tf.equal(token, vocabulary.eos_id)
        if self.limit is not None:
            over = tf.logical_or(over, index + 1 >= self.limit)
        state = SingleState(
            index=index + 1,
            last=token,
            ended=tf.logical_or(ended, over),
            tokens=tf.where(here, tf.expand_dims(token, 1), state.tokens),
            scores=state.scores + gain,
            predictor_state=step.state,
            runs=self._follow(state, token),
            token_scores=_written(state.token_scores, here, gain),
            attention=_attended(state.attention, here, ended, step.weights),
            sums=self._added(state, allowed, chosen),
        )
        return (state,)

    def _choose(self, logits, index):
        """Returns the next token `[B]`, `eos_id` for any end token, and its logit `[B]`."""
        best, logit = self.choose(logits, index)
        if not self.predictor.vocabulary.rules.end_ids:
            return best, logit
        eos_id = self.predictor.vocabulary.eos_id
        end = tf.squeeze(logits.column(eos_id), 1)  # [B]
        ends = self.predictor.vocabulary.is_further_end(best, end)
        return tf.where(ends, eos_id, best), tf.where(ends, end, logit)

    def _allowed(self, wide, logits, state):
        """Returns the `Blocks` with `NEVER` for forbidden tokens; `wide` is `[B, 1, V]`."""
        vocabulary = self.predictor.vocabulary
        if self.rules is not None:
            tokens = tf.expand_dims(state.tokens, 1)
            allowed = self.rules.apply(wide, tokens, state.runs, state.index)
            return Blocks(tf.squeeze(allowed, 1))
        return (
            Blocks(vocabulary.without_suppressed(logits.values))
            if vocabulary.rules.suppressed_ids
            else logits
        )

    def _added(self, state, allowed, logit):
        """Returns the sums with the log-probability of the chosen token among allowed ones."""
        if isinstance(state.sums, tuple):
            return ()
        gain = tf.cast(logit - tf.squeeze(self.predictor.log_sum_exp(allowed), 1), tf.float32)
        return state.sums + tf.where(state.ended, 0.0, gain)

    def _follow(self, state, token):
        if self.rules is None:
            return ()
        tokens, token = tf.expand_dims(state.tokens, 1), tf.expand_dims(token, 1)
        return self.rules.follow(state.runs, tokens, token, state.index)


def _limit(limit, length, batch, predictor, inputs):
    """Returns the maximum length of each output, `[B]`; `None` if the cache alone limits it."""
    fits = isinstance(limit, numbers.Integral) and limit >= length
    if fits and not limits_by_source(predictor, inputs):
        return None
    return limit_of(limit, length, batch, predictor, inputs)


def _written(token_scores, here, gain):
    if isinstance(token_scores, tuple):
        return ()
    return tf.where(here, tf.expand_dims(gain, 1), token_scores)  # [B, L]


def _attended(attention, here, ended, weights):
    """Returns the attention with the weights `[B, 1, S]` of this position in running sentences."""
    if isinstance(attention, tuple):
        return ()
    emitted = tf.logical_and(here, tf.expand_dims(tf.logical_not(ended), 1))  # [B, L]
    return tf.where(tf.expand_dims(emitted, 2), weights, attention)  # [B, L, S]
