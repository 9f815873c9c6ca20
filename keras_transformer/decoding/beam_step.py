"""One step of beam search: extends N hypotheses by a token and collects the finished ones."""

import dataclasses
import typing

import tensorflow as tf

from keras_transformer.decoding.constraints import Rules
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
from keras_transformer.decoding.predictor import Predictor, pick
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class BeamStep:
    """The body of the search loop with its constants.

    Args:
        predictor: A `Predictor`.
        beam_size: Number of hypotheses N of each sentence.
        length: Length of the result L.
        limit: Maximum length of the output of each sentence, `[B]`.
        shortest: Minimum length of an output, `[B, 1]` or `[1, 1]`.
        penalty: Function from a length, `[]` or `[B, 1]`, to the divisor of the score.
        by_score: Whether the search of a sentence stops by score instead of by count: see
            `beam_decode`.
        narrowing: Whether the beam shrinks by one for every finished hypothesis: see `beam_decode`.
        early_stopping: See `beam_decode`.
        rules: `Rules`, or `None`.
        used: Beam size of each sentence, `[B, 1]`, at most N. `None`: N for all.
        detects: See `Vocabulary.with_forced`.

    Call arguments:
        state: A `BeamState`.
    """

    predictor: Predictor
    beam_size: int
    length: int
    limit: tf.Tensor
    shortest: tf.Tensor
    penalty: typing.Callable
    by_score: bool
    narrowing: bool
    early_stopping: bool
    rules: Rules | None
    used: tf.Tensor | None = None
    detects: bool = False

    def beginning(self, batch, positions, n_best, predictor_state, details, read=None) -> BeamState:
        """Returns the state before the first step; for B and S see `Predictor.sizes`.

        `details` are the keyword arguments of `empty_rows` except `places`. With `read`, the
        `ReadPrompts`, it is the state after the tokens that have been read.
        """
        width, length, vocabulary = self.beam_size, self.length, self.predictor.vocabulary
        details = {**details, "places": positions is not None}
        of_rows = (length, vocabulary.pad_id)
        # Start with one hypothesis: N equal ones would have N times the same continuations.
        scores = tf.where(tf.equal(tf.range(width), 0), 0.0, no_scores(batch, width))
        state = BeamState(
            index=tf.constant(0),
            last=tf.fill([batch, width], vocabulary.bos_id),
            rows=empty_rows(batch, width, *of_rows, **details),
            scores=scores,
            predictor_state=predictor_state,
            ended_rows=empty_rows(batch, n_best, *of_rows, **details),
            ended_scores=no_scores(batch, n_best),
            ended_count=tf.zeros([batch], tf.int32),
            done=tf.zeros([batch], tf.bool),
            runs=() if self.rules is None else self.rules.start(batch, width),
            attention=() if positions is None else tf.zeros([batch, length, width, positions]),
        )
        if read is None:
            return state
        tokens = tf.repeat(tf.expand_dims(read.tokens, 1), width, axis=1)  # [B, N, L]
        return state._replace(
            index=read.count,
            last=tf.repeat(tf.expand_dims(read.last, 1), width, axis=1),
            rows=state.rows._replace(tokens=tokens),
        )

    def running(self, state) -> Tensor:
        """Returns `True` while the search of any sentence is not done."""
        return tf.logical_not(tf.reduce_all(state.done))

    def __call__(self, state) -> tuple[BeamState]:  # noqa: D102
        here = tf.equal(tf.range(self.length), state.index)  # [L]
        places = tf.expand_dims(tf.range(self.beam_size), 0)  # [1, N]
        rows = state.rows._replace(places=write(state.rows.places, here, places))
        vocabulary = self.predictor.vocabulary
        step = self.predictor.step(state.last, state.predictor_state, state.index)
        first, last = tf.equal(state.index, 0), state.index + 1 >= self.limit
        banned = None if self.rules is None else self.rules.banned
        logits = vocabulary.with_forced(step.logits, first, last, self.detects, banned)
        best = best_continuations(
            logits,
            self._allowed(logits, state),
            state.scores,
            vocabulary,
            self.predictor.log_sum_exp,
            gains=not isinstance(rows.token_scores, tuple),
            among=not isinstance(rows.sums, tuple),
        )
        best = self._frozen(best, state)
        attention = _attended(state.attention, here, step.weights)
        state = self._collect_ended(state, rows, best, here)
        if self.narrowing:
            kept = tf.range(self.beam_size) < self._width(state)  # [B, N]
            best = best._replace(scores=tf.where(kept, best.scores, NONE))
        state = self._go_on(state, rows, best, here)
        if self.by_score:
            state = self._collect_cut(state, best.ends)
        state = state._replace(
            index=state.index + 1,
            predictor_state=self.predictor.follow(step.state, best.parents),
            attention=attention,
        )
        return (state._replace(done=tf.logical_or(state.done, self._over(state))),)

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
            parents=tf.where(done, tf.range(self.beam_size), best.parents),
            tokens=tf.where(done, self.predictor.vocabulary.pad_id, best.tokens),
            ends=tf.where(done, NONE, ends),
            among=tf.nest.map_structure(lambda gains: tf.where(done, 0.0, gains), best.among),
        )

    def _collect_ended(self, state, rows, best, here):
        """Adds the hypotheses that end at this position and are good enough to `ended_rows`."""
        ends = among_the_best(best.ends, best.scores, self._width(state))  # [B, N]
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

    def _width(self, state):
        """Returns the current beam size of each sentence, `[]` or `[B, 1]`."""
        size = self.beam_size if self.used is None else self.used
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
        size = self.beam_size if self.used is None else self.used
        last = tf.logical_and(state.index + 1 >= self.limit, tf.logical_not(state.done))  # [B]
        last = tf.expand_dims(last, 1)  # [B, 1]
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
        size = self.beam_size if self.used is None else tf.squeeze(self.used, 1)
        over = tf.logical_or(state.index >= self.limit, state.ended_count >= size)
        # Sums of log-probabilities can only fall, and the penalty is largest at the limit.
        if self.early_stopping:
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
        rows = (state.ended_rows, state.rows)
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
        return tf.where(exists(scores), scores / self.penalty(length), NONE)


def _added(sums, gains):
    """Returns the sums of both, or `()` if they are not requested."""
    return () if isinstance(sums, tuple) else sums + gains


def _attended(attention, here, weights):
    """Returns the attention `[B, L, N, S]` with the weights `[B, N, S]` of this position added."""
    if isinstance(attention, tuple):
        return ()
    here = tf.reshape(here, [-1, 1, 1])  # [L, 1, 1]
    return tf.where(here, tf.expand_dims(weights, 1), attention)
