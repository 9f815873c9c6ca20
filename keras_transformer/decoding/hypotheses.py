"""The hypotheses of a beam: how they are kept, put aside and ranked."""

import typing

import tensorflow as tf

from keras_transformer.decoding.constraints import NEVER

# The score of a hypothesis that does not exist. Finite, because LiteRT takes the smallest number
# there is for minus infinity: divided by a penalty it was above it and counted as a score.
NONE = NEVER


class Rows(typing.NamedTuple):
    """What is known of each position of hypotheses. Fields that are not asked for are `()`.

    No hypothesis moves in the cache: `ancestors` says in which of its N places each position of a
    hypothesis is. Reordering them moves L integers for each instead of its keys and values.
    """

    tokens: tf.Tensor  # [B, N, L]
    ancestors: tf.Tensor  # [B, N, L], places in the cache, -1 for a position that is not there yet
    token_scores: tf.Tensor  # [B, N, L], log-probabilities


class State(typing.NamedTuple):
    """The search for N hypotheses of each sentence, of which the best M are returned."""

    index: tf.Tensor  # tokens that every running hypothesis has
    last: tf.Tensor  # [B, N], the last of them
    rows: Rows  # of [B, N, L]; the best hypothesis first
    scores: tf.Tensor  # [B, N], sums of log-probabilities
    cache: tuple  # of every block key and value heads, see `MultiHeadSelfAttention.step`
    ended_rows: Rows  # of [B, M, L], of the best that have ended
    ended_scores: tf.Tensor  # [B, M], normalised
    ended_count: tf.Tensor  # [B], of all that have ended
    done: tf.Tensor  # [B], whether the search of this sentence is over: nothing of it changes
    runs: tf.Tensor  # [B, N, L], see `Rules.follow`; () without rules
    attention: tf.Tensor  # [B, L, N, S], by place in the cache; () if not asked for


def empty_rows(batch, count, length, pad_id, token_scores):
    """`count` hypotheses that have said nothing."""
    shape = [batch, count, length]
    return Rows(
        tokens=tf.fill(shape, pad_id),
        ancestors=tf.fill(shape, -1),
        token_scores=tf.zeros(shape, tf.float32) if token_scores else (),
    )


def no_scores(batch, count):
    """The scores `[B, count]` of hypotheses that do not exist."""
    return tf.fill([batch, count], NONE)


def exists(scores):
    """Returns which scores are those of a hypothesis."""
    return scores > NONE / 2


def count_of(which):
    """How many along the last axis."""
    return tf.reduce_sum(tf.cast(which, tf.int32), axis=-1)


def pick(values, rows):
    """Takes hypotheses `[B, M]` out of tensors `[B, N, ...]`, however they are nested."""
    return tf.nest.map_structure(lambda each: tf.gather(each, rows, batch_dims=1), values)


def write(values, here, new):
    """Puts `new` `[B, N]` where `here` `[L]` is true, in `values` `[B, N, L]` if there are any."""
    return () if isinstance(values, tuple) else tf.where(here, tf.expand_dims(new, 2), values)


def best_of_both(rows, scores):
    """The best M of two groups: pairs of `Rows` of M and of N, and of their scores."""
    best, chosen = tf.math.top_k(tf.concat(scores, 1), scores[0].shape[1])  # [B, M]
    return pick(_joined(*rows), chosen), best


def ranked(rows, scores):
    """The best M of those that have ended, and behind them of those that the limit cut.

    Args:
        rows: A pair of `Rows`: M that have ended, where they exist, and N that have not.
        scores: A pair of their scores.

    Returns:
        `Rows` of `[B, M, L]` and scores `[B, M]`.
    """
    n_best = scores[0].shape[1]
    places = tf.expand_dims(tf.range(n_best), 0)  # [1, M]
    ended = tf.expand_dims(count_of(exists(scores[0])), 1)  # [B, 1]
    chosen = tf.where(places < ended, places, places - ended + n_best)  # [B, M]
    return pick(_joined(*rows), chosen), pick(tf.concat(scores, 1), chosen)


def _joined(first, second):
    return tf.nest.map_structure(lambda *both: tf.concat(both, 1), first, second)
