"""State of a beam search: running and finished hypotheses, their continuations and ranking."""

import typing

from keras_transformer.decoding.blocks import Blocks
from keras_transformer.decoding.predictor import NEVER, pick
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor

# Score of a hypothesis that does not exist. Finite, because LiteRT replaces minus infinity by the
# smallest float: divided by a penalty it became larger than that and was taken for a score.
NONE = NEVER


class Rows(typing.NamedTuple):
    """Tokens of hypotheses and their details. Fields that are not requested are `()`."""

    tokens: "tf.Tensor"  # [B, N, L]
    token_scores: "tf.Tensor"  # [B, N, L], log-probabilities
    places: "tf.Tensor"  # [B, N, L], index on axis N of `BeamState.attention` for each position
    sums: "tf.Tensor"  # [B, N], of log-probabilities among the allowed tokens


class BeamState(typing.NamedTuple):
    """State of a beam search with N hypotheses of each sentence, which returns the best M."""

    index: "tf.Tensor"  # number of tokens of every running hypothesis
    last: "tf.Tensor"  # [B, N], last token of each
    rows: Rows  # of [B, N, L], running hypotheses; the best first
    scores: "tf.Tensor"  # [B, N], sums of log-probabilities
    predictor_state: typing.Any  # see `Predictor`
    ended_rows: Rows  # of [B, M, L], the best finished hypotheses
    ended_scores: "tf.Tensor"  # [B, M], normalised
    ended_count: "tf.Tensor"  # [B], number of all finished hypotheses
    done: "tf.Tensor"  # [B], True for sentences whose search is done: nothing changes any more
    runs: typing.Any  # see `Rules.follow`; () without rules
    # [B, L, N, S], attention weights of the steps; () if the predictor has none. They do not move
    # when hypotheses are reordered: `Rows.places` moves instead.
    attention: "tf.Tensor"


class Continuations(typing.NamedTuple):
    """Best N continuations of a sentence, and the scores of its N hypotheses if they end here.

    All are `[B, N]`; continuations are in order, the best first. With terms, those that a smaller
    beam would keep come first.
    """

    scores: "tf.Tensor"
    parents: "tf.Tensor"  # index of the hypothesis that is continued
    tokens: "tf.Tensor"
    gains: "tf.Tensor"  # log-probabilities of the tokens; () if not requested
    ends: "tf.Tensor"  # score of each hypothesis followed by `eos_id`
    end_gains: "tf.Tensor"  # log-probability of `eos_id` for each hypothesis
    among: "tf.Tensor"  # `gains` and `end_gains` among the allowed tokens; () if not requested
    end_among: "tf.Tensor"
    # Scores that an end competes with, `[B, ...]`, and how many of the best it must be among. Both
    # are () without terms: the scores above, and the size of the beam.
    rivals: "tf.Tensor" = ()  # ty: ignore[invalid-assignment]
    places: "tf.Tensor" = ()  # ty: ignore[invalid-assignment]


def empty_rows(batch, count, length, pad_id, token_scores, places, sums) -> Rows:
    """Returns `Rows` of `count` empty hypotheses.

    Args:
        batch: Number of sentences B, scalar tensor.
        count: Number of hypotheses of each sentence.
        length: Maximum length of an output L.
        pad_id: The id to fill `tokens` with.
        token_scores: Whether the rows have `token_scores`.
        places: Whether the rows have `places`.
        sums: Whether the rows have `sums`.
    """
    shape = [batch, count, length]
    return Rows(
        tokens=tf.fill(shape, pad_id),
        token_scores=tf.zeros(shape, tf.float32) if token_scores else (),
        places=tf.zeros(shape, tf.int32) if places else (),
        sums=tf.zeros([batch, count], tf.float32) if sums else (),
    )


def no_scores(batch, count) -> Tensor:
    """Returns the scores `[B, count]` of hypotheses that do not exist."""
    return tf.fill([batch, count], NONE)


def exists(scores) -> Tensor:
    """Returns the mask of the scores that belong to an existing hypothesis."""
    return scores > NONE / 2


def count_of(which) -> Tensor:
    """Returns the number of `True` along the last axis."""
    return tf.reduce_sum(tf.cast(which, tf.int32), axis=-1)


def write(values, here, new) -> Tensor:
    """Writes `new` `[B, N]` into `values` `[B, N, L]` where `here` `[L]` is true; keeps `()`."""
    return () if isinstance(values, tuple) else tf.where(here, tf.expand_dims(new, 2), values)


def best_continuations(
    logits, allowed, scores, vocabulary, log_sum_exp, gains=False, among=False, banks=None
) -> Continuations:
    """Returns the best continuations of all hypotheses, and the score of each if it ends here.

    Selects the largest few logits of each hypothesis first and then the best N of those. This
    avoids a softmax and a sort over all N * V logits, which would cost more than the network.

    Args:
        logits: `[B, N, V]`.
        allowed: The logits with `NEVER` for forbidden tokens, `pad_id` and `bos_id` included;
            `None` without constraints.
        scores: Sums of log-probabilities `[B, N]`.
        vocabulary, log_sum_exp: Those of the predictor.
        gains: Whether to return the log-probabilities of the tokens.
        among: Whether to return those among the allowed tokens.
        banks: The `Banks` of the hypotheses. `None`: the best continuations are chosen by score.

    Returns:
        `Continuations`.
    """
    size, vocab_size = logits.shape[1:]
    logits = Blocks(tf.cast(logits, tf.float32))
    special = {vocabulary.eos_id}
    if allowed is None:  # masking all V logits would take one more pass over them
        allowed = logits
        special |= {vocabulary.pad_id, vocabulary.bos_id, *vocabulary.rules.suppressed_ids}
    else:
        allowed = Blocks(tf.cast(allowed, tf.float32))
    # Special tokens are removed only after the selection, so select that many more.
    count = min(size + len(special) + len(vocabulary.rules.end_ids), vocab_size)
    best, tokens = allowed.top_k(count)  # [B, N, count]
    for token in special:
        best = tf.where(tf.equal(tokens, token), NONE, best)
    if vocabulary.rules.end_ids:  # `eos_id` stands for the most probable one
        further = vocabulary.is_further_end(tokens, allowed.column(vocabulary.eos_id))
        best = tf.where(further, NONE, best)
    if banks is not None:
        best, tokens = banks.with_terms(best, tokens, allowed.values)
        count = tokens.shape[2] or tf.shape(tokens)[2]
    base = tf.expand_dims(scores, 2)  # [B, N, 1]
    total = log_sum_exp(logits)  # [B, N, 1]
    # Rounding must not make it positive: early stopping relies on that.
    gain = tf.minimum(best - total, 0.0)  # [B, N, count]
    flat = tf.reshape(base + gain, [-1, size * count])
    end_gain = tf.minimum(allowed.column(vocabulary.eos_id) - total, 0.0)  # [B, N, 1]
    if banks is None:
        (best_scores, chosen), contest = tf.math.top_k(flat, size), {}  # [B, N]
    else:
        chosen, contest = banks.choose(flat, tokens)
        best_scores = tf.gather(flat, chosen, batch_dims=1)

    def take(values):
        return tf.gather(tf.reshape(values, [-1, size * count]), chosen, batch_dims=1)

    others = total - log_sum_exp(allowed) if among else ()  # [B, N, 1]
    return Continuations(
        scores=best_scores,
        parents=chosen // count,
        tokens=take(tokens),
        gains=take(gain) if gains else (),
        ends=tf.squeeze(base + end_gain, 2),
        end_gains=tf.squeeze(end_gain, 2),
        among=take(gain + others) if among else (),
        end_among=tf.squeeze(end_gain + others, 2) if among else (),
        **contest,
    )


def in_order(best) -> Continuations:
    """Returns `Continuations` with the best first."""
    scores, order = tf.math.top_k(best.scores, best.scores.shape[1])  # [B, N]
    others = {name: getattr(best, name) for name in ("parents", "tokens", "gains", "among")}
    return best._replace(scores=scores, **pick(others, order))


def among_the_best(ends, scores, size) -> Tensor:
    """Returns `ends`, with `NONE` where `size` or more of all `ends` and `scores` are better.

    Args:
        ends: `[B, N]`, scores of the hypotheses that end here.
        scores: `[B, N]`, scores of the continuations.
        size: Number, or tensor `[B, 1]`.
    """
    rivals = tf.expand_dims(tf.concat([scores, ends], 1), 1)  # [B, 1, 2 * N]
    better = count_of(rivals > tf.expand_dims(ends, 2))  # [B, N]
    return tf.where(better < size, ends, NONE)


def best_of_both(rows, scores) -> tuple[Rows, Tensor]:
    """Returns the best M hypotheses of two groups.

    Args:
        rows: A pair of `Rows`, of M and of N hypotheses.
        scores: The pair of their scores.
    """
    best, chosen = tf.math.top_k(tf.concat(scores, 1), scores[0].shape[1])  # [B, M]
    return pick(_joined(*rows), chosen), best


def ranked(rows, scores) -> tuple[Rows, Tensor]:
    """Returns the best M hypotheses: finished ones first, then those cut at the maximum length.

    Args:
        rows: A pair of `Rows`: up to M finished hypotheses and N unfinished ones.
        scores: The pair of their scores.

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
