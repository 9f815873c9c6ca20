"""The hypotheses of a beam: how they are kept, go on, end and are ranked."""

import typing

import tensorflow as tf

from keras_transformer.decoding.constraints import NEVER
from keras_transformer.decoding.predictor import pick
from keras_transformer.decoding.top_k import top_k

# The score of a hypothesis that does not exist. Finite, because LiteRT takes the smallest number
# there is for minus infinity: divided by a penalty it was above it and counted as a score.
NONE = NEVER


class Rows(typing.NamedTuple):
    """Tokens of hypotheses and their details. Fields that are not asked for are `()`."""

    tokens: tf.Tensor  # [B, N, L]
    token_scores: tf.Tensor  # [B, N, L], log-probabilities
    places: tf.Tensor  # [B, N, L], where `BeamState.attention` has the weights of each position


class BeamState(typing.NamedTuple):
    """The search for N hypotheses of each sentence, of which the best M are returned."""

    index: tf.Tensor  # tokens that every running hypothesis has
    last: tf.Tensor  # [B, N], the last of them
    rows: Rows  # of [B, N, L]; the best hypothesis first
    scores: tf.Tensor  # [B, N], sums of log-probabilities
    predictor_state: typing.Any  # see `Predictor`
    ended_rows: Rows  # of [B, M, L], of the best that have ended
    ended_scores: tf.Tensor  # [B, M], normalised
    ended_count: tf.Tensor  # [B], of all that have ended
    done: tf.Tensor  # [B], whether the search of this sentence is over: nothing of it changes
    runs: tf.Tensor  # [B, N, L], see `Rules.follow`; () without rules
    # [B, L, N, S], the weights of the steps; () if the predictor has none. They stay where they are
    # when hypotheses change places: `Rows.places` of each moves instead.
    attention: tf.Tensor


class Continuations(typing.NamedTuple):
    """The best N continuations of a sentence, the best first, and how its N hypotheses would end.

    All are `[B, N]`.
    """

    scores: tf.Tensor
    parents: tf.Tensor  # number of the hypothesis that goes on
    tokens: tf.Tensor
    gains: tf.Tensor  # log-probabilities of the tokens; () if not asked for
    ends: tf.Tensor  # score of each hypothesis with `eos_id`
    end_gains: tf.Tensor  # log-probability of `eos_id` in each


def empty_rows(batch, count, length, pad_id, token_scores, places):
    """`count` hypotheses without tokens; `places` and `token_scores`: whether they have them."""
    shape = [batch, count, length]
    return Rows(
        tokens=tf.fill(shape, pad_id),
        token_scores=tf.zeros(shape, tf.float32) if token_scores else (),
        places=tf.zeros(shape, tf.int32) if places else (),
    )


def no_scores(batch, count):
    """The scores `[B, count]` of hypotheses that do not exist."""
    return tf.fill([batch, count], NONE)


def exists(scores):
    """Returns which scores are those of a hypothesis."""
    return scores > NONE / 2


def count_of(which):
    """Returns the number of `True` along the last axis."""
    return tf.reduce_sum(tf.cast(which, tf.int32), axis=-1)


def write(values, here, new):
    """Puts `new` `[B, N]` where `here` `[L]` is true, in `values` `[B, N, L]` if there are any."""
    return () if isinstance(values, tuple) else tf.where(here, tf.expand_dims(new, 2), values)


def best_continuations(logits, allowed, scores, vocabulary, gains=False):
    """The best continuations of all hypotheses, and what each scores if it ends here.

    The best few of each hypothesis by logits, then the best N of those: neither a softmax nor a
    sort of all N * V, which would cost more than the network.

    Args:
        logits: `[B, N, V]`.
        allowed: The same with `NEVER` where a token is forbidden, `pad_id` and `bos_id` among
            them; `None` without constraints.
        scores: Sums of log-probabilities `[B, N]`.
        vocabulary: The `Vocabulary` of the predictor.
        gains: Whether the log-probabilities of the tokens are asked for.

    Returns:
        `Continuations`.
    """
    beam_size, vocab_size = logits.shape[1:]
    logits = tf.cast(logits, tf.float32)
    special = {vocabulary.eos_id}
    if allowed is None:  # masking all of V would read and write it once more
        allowed = logits
        special |= {vocabulary.pad_id, vocabulary.bos_id, *vocabulary.silent_ids}
    allowed = tf.cast(allowed, tf.float32)
    # The special ones are left out only then.
    count = min(beam_size + len(special), vocab_size)
    best, tokens = top_k(allowed, count)  # [B, N, count]
    for token in special:
        best = tf.where(tf.equal(tokens, token), NONE, best)
    base = tf.expand_dims(scores, 2)  # [B, N, 1]
    total = tf.reduce_logsumexp(logits, axis=2, keepdims=True)  # [B, N, 1]
    # Not above 0, whatever the rounding: early stopping relies on it.
    gain = tf.minimum(best - total, 0.0)  # [B, N, count]
    flat = tf.reshape(base + gain, [-1, beam_size * count])
    end_gain = tf.minimum(allowed[:, :, vocabulary.eos_id : vocabulary.eos_id + 1] - total, 0.0)
    best_scores, chosen = tf.math.top_k(flat, beam_size)  # [B, N]

    def take(values):
        return tf.gather(tf.reshape(values, [-1, beam_size * count]), chosen, batch_dims=1)

    return Continuations(
        scores=best_scores,
        parents=chosen // count,
        tokens=take(tokens),
        gains=take(gain) if gains else (),
        ends=tf.squeeze(base + end_gain, 2),
        end_gains=tf.squeeze(end_gain, 2),
    )


def among_the_best(ends, scores, size):
    """`ends` where fewer than `size` of all `ends` and `scores` are better, elsewhere none.

    Args:
        ends: `[B, N]`.
        scores: `[B, N]`.
        size: Number, or tensor `[B, 1]`.
    """
    rivals = tf.expand_dims(tf.concat([scores, ends], 1), 1)  # [B, 1, 2 * N]
    better = count_of(rivals > tf.expand_dims(ends, 2))  # [B, N]
    return tf.where(better < size, ends, NONE)


def best_of_both(rows, scores):
    """The best M of two groups: pairs of `Rows` of M and of N, and of their scores."""
    best, chosen = tf.math.top_k(tf.concat(scores, 1), scores[0].shape[1])  # [B, M]
    return pick(_joined(*rows), chosen), best


def ranked(rows, scores):
    """The best M of those that have ended, and after them of those that the limit cut.

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
