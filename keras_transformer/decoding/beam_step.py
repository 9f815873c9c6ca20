"""One step of beam search: a token for each of N hypotheses, and those that end put aside."""

import dataclasses
import typing

import tensorflow as tf

from keras_transformer.decoding.alignment import attended
from keras_transformer.decoding.constraints import Rules
from keras_transformer.decoding.continuation import among_the_best, best_continuations
from keras_transformer.decoding.hypotheses import (
    NONE,
    State,
    best_of_both,
    count_of,
    empty_rows,
    exists,
    no_scores,
    pick,
    ranked,
    write,
)
from keras_transformer.decoding.stages import positions_of


@dataclasses.dataclass(frozen=True)
class BeamStep:
    """The body of the loop, and what does not change in it.

    Args:
        model: A `Transformer`.
        memory_heads: From `Transformer.start`.
        memory_allowed: From `Transformer.encode`.
        beam_size: Hypotheses of each sentence N.
        length: Length of the cache L.
        limit: Longest output of each sentence, `[B]`.
        shortest: Shortest output, `[B, 1]` or `[1, 1]`.
        penalty: Function of a length, `[]` or `[B, 1]`, to what the score is divided by.
        early_stopping: See `beam_decode`.
        rules: `Rules`, or `None`.
        alignment: See `beam_decode`.
        used: How many of the N hypotheses each sentence has, `[B, 1]`. `None`: all of them.

    Call arguments:
        state: A `State`.
    """

    model: typing.Any
    memory_heads: tuple
    memory_allowed: tf.Tensor
    beam_size: int
    length: int
    limit: tf.Tensor
    shortest: tf.Tensor
    penalty: typing.Callable
    early_stopping: bool
    rules: Rules | None
    alignment: tuple | None
    used: tf.Tensor | None = None

    def beginning(self, batch, positions, n_best, cache, token_scores):
        """The state before the first step, for sources of so many positions."""
        width, length, pad_id = self.beam_size, self.length, self.model.config.pad_id
        # One hypothesis to begin with: of equal ones all continuations would be equal, too.
        scores = tf.where(tf.equal(tf.range(width), 0), 0.0, no_scores(batch, width))
        ended_rows = empty_rows(batch, n_best, length, pad_id, token_scores)
        return State(
            index=tf.constant(0),
            last=tf.fill([batch, width], self.model.config.bos_id),
            rows=empty_rows(batch, width, length, pad_id, token_scores),
            scores=scores,
            cache=cache,
            ended_rows=self._kept(ended_rows),
            ended_scores=no_scores(batch, n_best),
            ended_count=tf.zeros([batch], tf.int32),
            done=tf.zeros([batch], tf.bool),
            runs=() if self.rules is None else self.rules.start(batch, width),
            attention=() if self.alignment is None else tf.zeros([batch, length, width, positions]),
        )

    def running(self, state):
        """Whether the search of a sentence is not over."""
        return tf.logical_not(tf.reduce_all(state.done))

    def __call__(self, state):  # noqa: D102
        here = tf.equal(tf.range(self.length), state.index)  # [L]
        places = tf.expand_dims(tf.range(self.beam_size), 1)  # [N, 1]
        rows = state.rows._replace(ancestors=tf.where(here, places, state.rows.ancestors))
        logits, cache, attention = self._run(state, rows.ancestors, here)
        allowed = self._allowed(logits, state)
        wants_gains = not isinstance(rows.token_scores, tuple)
        found = best_continuations(logits, allowed, state.scores, self.model.config, wants_gains)
        found = self._frozen(found, state)
        state = self._put_aside(state, rows, found, here)
        state = self._go_on(state, rows, found, here)
        state = state._replace(index=state.index + 1, cache=cache, attention=attention)
        return (state._replace(done=tf.logical_or(state.done, self._over(state))),)

    def _run(self, state, ancestors, here):
        """The model at one position: logits `[B, N, V]`, the cache and what was attended to."""
        width, positions = self.beam_size, positions_of(state.cache)
        ancestors = tf.expand_dims(ancestors[:, :, :positions], 3)  # [B, N, P, 1]
        allowed = tf.equal(ancestors, tf.range(width))  # [B, N, P, N]
        allowed = tf.reshape(allowed, [-1, width, positions * width])  # [B, N, P * N]
        arguments = (
            state.last,
            state.cache,
            state.index,
            self.memory_heads,
            self.memory_allowed,
            allowed,
        )
        if self.alignment is None:
            return *self.model.step(*arguments), ()
        logits, cache, weights = self.model.step(*arguments, return_weights=True)
        new = tf.expand_dims(attended(weights, self.alignment), 1)  # [B, 1, N, S]
        here = tf.reshape(here, [-1, 1, 1])  # [L, 1, 1]
        return logits, cache, tf.where(here, new, state.attention)

    def _may_end(self, state):
        return state.index + 1 >= self.shortest  # [B or 1, 1]

    def _allowed(self, logits, state):
        """The logits without those that the constraints forbid; `None` without constraints."""
        if self.rules is None:
            return None
        return self.rules.apply(
            logits, state.rows.tokens, state.runs, state.index, self._may_end(state)
        )

    def _frozen(self, found, state):
        """The continuations, but in a sentence that is done the hypotheses as they are."""
        done = tf.expand_dims(state.done, 1)  # [B, 1]
        ends = found.ends
        if self.rules is None:  # else `_allowed` has taken care of it
            ends = tf.where(self._may_end(state), ends, NONE)
        return found._replace(
            scores=tf.where(done, state.scores, self._used(found.scores)),
            parents=tf.where(done, tf.range(self.beam_size), found.parents),
            tokens=tf.where(done, self.model.config.pad_id, found.tokens),
            ends=tf.where(done, NONE, ends),
        )

    def _put_aside(self, state, rows, found, here):
        """The hypotheses that end here, if they are among the best."""
        size = self.beam_size if self.used is None else self.used
        ends = among_the_best(found.ends, found.scores, size)  # [B, N]
        rows = rows._replace(
            tokens=tf.where(here, self.model.config.eos_id, rows.tokens),
            token_scores=write(rows.token_scores, here, found.end_gains),
        )
        ended_rows, ended_scores = best_of_both(
            (state.ended_rows, self._kept(rows)),
            (state.ended_scores, self._normalize(ends, state.index + 1)),
        )  # [B, M, L], [B, M]
        ended_count = state.ended_count + count_of(exists(ends))  # [B]
        return state._replace(
            ended_rows=ended_rows, ended_scores=ended_scores, ended_count=ended_count
        )

    def _go_on(self, state, rows, found, here):
        """The best continuations take the places of the hypotheses."""
        rows, runs = pick((rows, state.runs), found.parents)
        if self.rules is not None:
            runs = self.rules.follow(runs, rows.tokens, found.tokens, state.index)
        rows = rows._replace(
            tokens=write(rows.tokens, here, found.tokens),
            token_scores=write(rows.token_scores, here, found.gains),
        )
        return state._replace(last=found.tokens, rows=rows, scores=found.scores, runs=runs)

    def _over(self, state):
        """Which sentences need no further step, `[B]`."""
        size = self.beam_size if self.used is None else tf.squeeze(self.used, 1)
        over = tf.logical_or(state.index >= self.limit, state.ended_count >= size)
        if self.early_stopping:  # a score can only fall and the penalty only grow, up to the limit
            attainable = self._normalize(state.scores[:, :1], tf.expand_dims(self.limit, 1))
            last = self._last(state.ended_scores) >= attainable  # [B, 1]
            over = tf.logical_or(over, tf.squeeze(last, 1))
        return over

    def _last(self, ended_scores):
        """The score of the last hypothesis that is asked for, `[B, 1]`."""
        if self.used is None:
            return ended_scores[:, -1:]
        last = tf.minimum(self.used, ended_scores.shape[1]) - 1  # [B, 1]
        return tf.gather(ended_scores, last, batch_dims=1)

    def _used(self, scores):
        """Scores `[B, N]`, the best first, without those of more hypotheses than a sentence has."""
        if self.used is None:
            return scores
        return tf.where(tf.range(scores.shape[1]) < self.used, scores, NONE)

    def results(self, state):
        """The best M of each sentence: `Rows` of `[B, M, L]`, and scores `[B, M]`."""
        cut = self._normalize(state.scores, tf.expand_dims(self.limit, 1))  # [B, N]
        rows = (state.ended_rows, self._kept(state.rows))
        rows, scores = ranked(rows, (state.ended_scores, cut))
        scores = self._used(scores)
        pad_id = self.model.config.pad_id
        tokens = tf.where(exists(tf.expand_dims(scores, 2)), rows.tokens, pad_id)
        if isinstance(rows.token_scores, tuple):
            return rows._replace(tokens=tokens), scores
        token_scores = tf.where(tf.equal(tokens, pad_id), 0.0, rows.token_scores)
        return rows._replace(tokens=tokens, token_scores=token_scores), scores

    def attended(self, rows, attention):
        """What each token of the results attended to, `[B, M, L, S]`; `()` if not asked for."""
        if self.alignment is None:
            return ()
        places = tf.transpose(tf.maximum(rows.ancestors, 0), [0, 2, 1])  # [B, L, M]
        chosen = tf.gather(attention, places, batch_dims=2)  # [B, L, M, S]
        said = tf.not_equal(tf.expand_dims(rows.tokens, 3), self.model.config.pad_id)
        return tf.where(said, tf.transpose(chosen, [0, 2, 1, 3]), 0.0)

    def _kept(self, rows):
        """What hypotheses that have ended keep: they only need places to look up an alignment."""
        return rows if self.alignment is not None else rows._replace(ancestors=())

    def _normalize(self, scores, length):
        return tf.where(exists(scores), scores / self.penalty(length), NONE)
