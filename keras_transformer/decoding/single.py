"""The loop of the searches that follow one hypothesis: greedy search and sampling."""

import dataclasses
import numbers
import typing

import tensorflow as tf

from keras_transformer.decoding.alignment import attended, check_alignment
from keras_transformer.decoding.constraints import Rules
from keras_transformer.decoding.lengths import check_lengths, limit_of
from keras_transformer.decoding.result import make_result
from keras_transformer.decoding.stages import STAGES, in_stages, stages


class _State(typing.NamedTuple):
    index: tf.Tensor  # tokens that every sentence which has not ended has
    last: tf.Tensor  # [B], the last of them
    ended: tf.Tensor  # [B]
    tokens: tf.Tensor  # [B, L]
    scores: tf.Tensor  # [B], sums of log-probabilities
    cache: tuple  # of every block key and value heads, see `MultiHeadSelfAttention.step`
    runs: tf.Tensor  # [B, 1, L], see `Rules.follow`; () without rules
    token_scores: tf.Tensor  # [B, L]; () if not asked for
    attention: tf.Tensor  # [B, L, S]; () if not asked for


def decode_single(
    model,
    source,
    choose,
    max_length=None,
    cache_length=None,
    constraints=None,
    token_scores=False,
    alignment=None,
    cache_stages=STAGES,
):
    """Says one token after the other until every sentence has ended.

    Args:
        model: A `Transformer`.
        source: Token ids `[B, S]`.
        choose: Function of the logits `[B, V]`, `NEVER` where a token is forbidden, and of the
            number of the step, which returns the next token `[B]` and its logit `[B]`.
        max_length: See `greedy_decode`.
        cache_length: See `greedy_decode`.
        constraints: See `greedy_decode`.
        token_scores: See `greedy_decode`.
        alignment: See `greedy_decode`.
        cache_stages: See `greedy_decode`.

    Returns:
        What `greedy_decode` returns.
    """
    config = model.config
    length = check_lengths(config.max_length, 1, max_length, cache_length)
    check_alignment(alignment, config)
    source = tf.convert_to_tensor(source, tf.int32)
    batch = tf.shape(source)[0]
    memory, memory_allowed = model.encode(source)
    ends = stages(length, cache_stages)
    cache, memory_heads = model.start(memory, ends[0])
    loop = _Loop(
        step_model=_stepper(model, memory_heads, memory_allowed, alignment),
        choose=choose,
        config=config,
        length=length,
        limit=_limit(max_length, length, batch),
        rules=None if constraints is None else Rules(constraints, config, length),
    )
    beginning = _State(
        index=tf.constant(0),
        last=tf.fill([batch], config.bos_id),
        ended=tf.zeros([batch], tf.bool),
        tokens=tf.fill([batch, length], config.pad_id),
        scores=tf.zeros([batch], tf.float32),
        cache=cache,
        runs=() if loop.rules is None else loop.rules.start(batch, 1),
        token_scores=tf.zeros([batch, length], tf.float32) if token_scores else (),
        attention=() if alignment is None else tf.zeros([batch, length, tf.shape(source)[1]]),
    )
    state = in_stages(model, loop.running, loop.step, beginning, ends)
    return make_result(state.tokens, state.scores, state.token_scores, state.attention)


@dataclasses.dataclass(frozen=True)
class _Loop:
    """The condition and the body of the loop, and what does not change in it."""

    step_model: typing.Callable
    choose: typing.Callable
    config: typing.Any
    length: int
    limit: tf.Tensor | None
    rules: Rules | None

    def running(self, state):
        """Whether a sentence has not ended."""
        return tf.logical_not(tf.reduce_all(state.ended))

    def step(self, state):
        """Says one token in each sentence that has not ended."""
        index, ended = state.index, state.ended
        logits, cache, attention = self.step_model(state.last, state.cache, index)
        best, logit = self.choose(self._allowed(logits, state), index)  # [B] each
        gain = tf.cast(logit - tf.reduce_logsumexp(logits, axis=-1), tf.float32)  # [B]
        gain = tf.where(ended, 0.0, gain)
        token = tf.where(ended, self.config.pad_id, best)
        here = tf.equal(tf.range(self.length), index)  # [L]
        over = tf.equal(token, self.config.eos_id)
        if self.limit is not None:
            over = tf.logical_or(over, index + 1 >= self.limit)
        state = _State(
            index=index + 1,
            last=token,
            ended=tf.logical_or(ended, over),
            tokens=tf.where(here, tf.expand_dims(token, 1), state.tokens),
            scores=state.scores + gain,
            cache=cache,
            runs=self._follow(state, token),
            token_scores=_written(state.token_scores, here, gain),
            attention=_attended(state.attention, here, ended, attention),
        )
        return (state,)

    def _allowed(self, logits, state):
        if self.rules is None:
            return logits
        wide, tokens = tf.expand_dims(logits, 1), tf.expand_dims(state.tokens, 1)
        return tf.squeeze(self.rules.apply(wide, tokens, state.runs, state.index), 1)

    def _follow(self, state, token):
        if self.rules is None:
            return ()
        tokens, token = tf.expand_dims(state.tokens, 1), tf.expand_dims(token, 1)
        return self.rules.follow(state.runs, tokens, token, state.index)


def _limit(max_length, cache_length, batch):
    """The longest output of each sentence, `[B]`. `None`: the end of the cache, at no cost."""
    if max_length is None:
        return None
    if isinstance(max_length, numbers.Integral) and max_length == cache_length:
        return None
    return limit_of(max_length, cache_length, batch)


def _stepper(model, memory_heads, memory_allowed, alignment):
    """A step of the model; with an alignment it says what the step attended to, `[B, S]`."""

    def step(tokens, cache, index):
        if alignment is None:
            return *model.step(tokens, cache, index, memory_heads, memory_allowed), ()
        logits, cache, weights = model.step(
            tokens, cache, index, memory_heads, memory_allowed, return_weights=True
        )
        return logits, cache, attended(weights, alignment)

    return step


def _written(token_scores, here, gain):
    return (
        ()
        if isinstance(token_scores, tuple)
        else tf.where(here, tf.expand_dims(gain, 1), token_scores)
    )


def _attended(attention, here, ended, new):
    if isinstance(attention, tuple):
        return ()
    said = tf.logical_and(here, tf.expand_dims(tf.logical_not(ended), 1))  # [B, L]
    return tf.where(tf.expand_dims(said, 2), tf.expand_dims(new, 1), attention)  # [B, L, S]
