"""Beam search with a key/value cache (section 6.1)."""

import numbers
import typing

import tensorflow as tf

from keras_transformer.decoding.lengths import check_lengths, limit_of

NORMALIZATIONS = ("gnmt", "average", "none")
# The score of a hypothesis that does not exist. Finite, because LiteRT takes the smallest number
# there is for minus infinity: divided by a penalty it was above it and counted as a score.
NONE = -1e9


class _State(typing.NamedTuple):
    """The search for N hypotheses of each sentence, of which the best M are returned.

    No hypothesis moves in the cache: `ancestors` says in which of its N places each position of a
    hypothesis is. Reordering them moves L integers for each instead of its keys and values.
    """

    index: tf.Tensor  # tokens that every running hypothesis has
    last: tf.Tensor  # [B, N], the last of them
    tokens: tf.Tensor  # [B, N, L], all of them; the best hypothesis first
    scores: tf.Tensor  # [B, N], sums of log-probabilities
    ancestors: tf.Tensor  # [B, N, L], places in the cache, -1 for a position that is not there yet
    cache: tuple  # of every block two tensors [B, H, L, N * K]
    ended_tokens: tf.Tensor  # [B, M, L], of the best that have ended
    ended_scores: tf.Tensor  # [B, M], normalised
    ended_count: tf.Tensor  # [B], of all that have ended
    done: tf.Tensor  # [B], whether the search of this sentence is over: nothing of it changes


def beam_decode(
    model,
    source,
    beam_size=4,
    n_best=1,
    length_penalty=0.6,
    normalization="gnmt",
    min_length=1,
    max_length=None,
    cache_length=None,
    early_stopping=True,
):
    """Keeps the `beam_size` most probable hypotheses at each step; ranks those that end by score.

    The score of a hypothesis of `n` tokens, `eos_id` included, is the sum of their
    log-probabilities, divided by `((5 + n) / 6) ** length_penalty` (`"gnmt"`), by `n`
    (`"average"`) or by nothing (`"none"`). A hypothesis ends when its `eos_id` is among the best
    `beam_size` continuations of all; then it is put aside, unchanged. A sentence is done when
    `beam_size` hypotheses have ended or its longest length is reached. Hypotheses that had not
    ended there rank behind all that had. `pad_id` and `bos_id` are never said.

    One `tf.while_loop` with a cache of fixed size: works eagerly, in a `tf.function`, under XLA,
    in a SavedModel and in LiteRT. The result of a sentence does not depend on the others in its
    batch. With a beam of 1 it is that of `greedy_decode`.

    Args:
        model: A `Transformer`.
        source: Token ids `[B, S]`, integer, each row ending in `eos_id` and then padding.
        beam_size: Hypotheses N that run at a time.
        n_best: Hypotheses M that are returned for each sentence, at most `beam_size`.
        length_penalty: Exponent of `"gnmt"`, at least 0: number or scalar tensor.
        normalization: `"gnmt"`, `"average"` or `"none"`.
        min_length: Shortest output in tokens, `eos_id` included: integer, or tensor, scalar or
            `[B]`.
        max_length: Longest output in tokens, `eos_id` included: integer, or tensor, scalar or
            `[B]`; a tensor is cut at `cache_length`. `None`: `cache_length`.
        cache_length: Length L of the cache and of the result, an integer. `None`: `max_length`
            where that is an integer, else the model's `max_length`.
        early_stopping: Whether a sentence is done, too, when no running hypothesis can still get
            into the best `n_best`. The result is the same without, only later.

    Returns:
        Token ids `[B, n_best, L]`, int32, each row ending in `eos_id` and then padding (without
        `eos_id` where the limit came first), and scores `[B, n_best]`, float32; distinct, the best
        first. Where there are fewer than `n_best`, rows of padding with a score of -1e9.

    Raises:
        ValueError: If a number is out of range or `normalization` is unknown.

    Reference: Vaswani et al. (2017), section 6.1; the penalty is Eq. 14 of Wu et al. (2016),
        "Google's Neural Machine Translation System", without coverage.
    """
    config = model.config
    check_beam(beam_size, n_best, length_penalty, normalization)
    cache_length = check_lengths(config.max_length, min_length, max_length, cache_length)
    source = tf.convert_to_tensor(source, tf.int32)
    batch = tf.shape(source)[0]
    limit = limit_of(max_length, cache_length, batch)  # [B]
    shortest = tf.reshape(tf.cast(min_length, tf.int32), [-1, 1])  # [B or 1, 1]
    memory, memory_allowed = model.encode(source)
    cache, memory_heads = model.start(memory, cache_length, beam_size)
    places = tf.range(beam_size)  # [N]

    def normalize(scores, length):
        penalty = _penalty(tf.cast(length, tf.float32), length_penalty, normalization)
        return tf.where(exists(scores), scores / penalty, NONE)

    def running(state):
        return tf.reduce_any(tf.logical_not(state.done))

    def step(state):
        here = tf.equal(tf.range(cache_length), state.index)  # [L]
        ancestors = tf.where(here, tf.expand_dims(places, 1), state.ancestors)  # [B, N, L]
        allowed = tf.equal(tf.expand_dims(ancestors, 3), places)  # [B, N, L, N]
        allowed = tf.reshape(allowed, [-1, beam_size, cache_length * beam_size])  # [B, N, L * N]
        logits, cache = model.step(
            state.last, state.cache, state.index, memory_heads, memory_allowed, allowed
        )  # [B, N, V]
        scores, parents, tokens, ends = _continue(logits, state.scores, config)  # [B, N] each
        done = tf.expand_dims(state.done, 1)  # [B, 1]
        scores = tf.where(done, state.scores, scores)
        parents = tf.where(done, places, parents)
        tokens = tf.where(done, config.pad_id, tokens)
        said = tf.gather(state.tokens, parents, batch_dims=1)  # [B, N, L]

        length = state.index + 1
        may_end = tf.logical_and(length >= shortest, tf.logical_not(done))
        ends = _among_the_best(tf.where(may_end, ends, NONE), scores)  # [B, N]
        ended_tokens, ended_scores = _best_of_both(
            (state.ended_tokens, tf.where(here, config.eos_id, state.tokens)),
            (state.ended_scores, normalize(ends, length)),
        )  # [B, M, L], [B, M]
        ended_count = state.ended_count + _count(exists(ends))  # [B]
        over = tf.logical_or(length >= limit, ended_count >= beam_size)  # [B]
        if early_stopping:  # a score can only fall and the penalty only grow, up to the limit
            attainable = normalize(scores[:, 0], limit)  # [B]
            over = tf.logical_or(over, ended_scores[:, -1] >= attainable)
        state = _State(
            index=length,
            last=tokens,
            tokens=tf.where(here, tf.expand_dims(tokens, 2), said),
            scores=scores,
            ancestors=tf.gather(ancestors, parents, batch_dims=1),
            cache=cache,
            ended_tokens=ended_tokens,
            ended_scores=ended_scores,
            ended_count=ended_count,
            done=tf.logical_or(state.done, over),
        )
        return (state,)

    state = _beginning(batch, beam_size, n_best, cache, cache_length, config)
    (state,) = tf.while_loop(running, step, (state,))
    return _ranked(state, normalize(state.scores, tf.expand_dims(limit, 1)), config.pad_id)


def _beginning(batch, beam_size, n_best, cache, cache_length, config):
    """The state before the first step."""
    return _State(
        index=tf.constant(0),
        last=tf.fill([batch, beam_size], config.bos_id),
        tokens=tf.fill([batch, beam_size, cache_length], config.pad_id),
        # One hypothesis to begin with: of equal ones all continuations would be equal, too.
        scores=tf.where(tf.equal(tf.range(beam_size), 0), 0.0, tf.fill([batch, beam_size], NONE)),
        ancestors=tf.fill([batch, beam_size, cache_length], -1),
        cache=cache,
        ended_tokens=tf.fill([batch, n_best, cache_length], config.pad_id),
        ended_scores=tf.fill([batch, n_best], NONE),
        ended_count=tf.zeros([batch], tf.int32),
        done=tf.zeros([batch], tf.bool),
    )


def exists(scores):
    """Returns which scores are those of a hypothesis."""
    return scores > NONE / 2


def _continue(logits, scores, config):
    """The best continuations of all hypotheses, and what each scores if it ends here.

    The best few of each hypothesis by logits, then the best N of those: neither a softmax nor a
    sort of all N * V, which would cost more than the network.

    Args:
        logits: `[B, N, V]`.
        scores: Sums of log-probabilities `[B, N]`.
        config: The `TransformerConfig`.

    Returns:
        Four tensors `[B, N]`: score, number of the continued hypothesis and token of each of the
        best continuations, the best first; and the score of each hypothesis with `eos_id`.
    """
    beam_size, vocab_size = logits.shape[1:]
    logits = tf.cast(logits, tf.float32)
    special = {config.pad_id, config.bos_id, config.eos_id}
    # The special ones are left out only then: masking all of V would read and write it once more.
    count = min(beam_size + len(special), vocab_size)
    best, tokens = tf.math.top_k(logits, count)  # [B, N, count]
    for token in special:
        best = tf.where(tf.equal(tokens, token), NONE, best)
    base = tf.expand_dims(scores, 2)  # [B, N, 1]
    total = tf.reduce_logsumexp(logits, axis=2, keepdims=True)  # [B, N, 1]
    # Not above 0, whatever the rounding: early stopping relies on it.
    flat = tf.reshape(base + tf.minimum(best - total, 0.0), [-1, beam_size * count])
    ends = base + tf.minimum(logits[:, :, config.eos_id : config.eos_id + 1] - total, 0.0)
    scores, chosen = tf.math.top_k(flat, beam_size)  # [B, N]
    tokens = tf.gather(tf.reshape(tokens, [-1, beam_size * count]), chosen, batch_dims=1)
    return scores, chosen // count, tokens, tf.squeeze(ends, 2)


def _among_the_best(ends, scores):
    """`ends` where at most N - 1 of all `ends` and `scores` `[B, N]` are better, elsewhere none."""
    rivals = tf.expand_dims(tf.concat([scores, ends], 1), 1)  # [B, 1, 2 * N]
    better = _count(rivals > tf.expand_dims(ends, 2))  # [B, N]
    return tf.where(better < ends.shape[1], ends, NONE)


def _best_of_both(tokens, scores):
    """The best M of two groups: pairs of tokens `[B, M, L]`, `[B, N, L]`, and of their scores."""
    best, chosen = tf.math.top_k(tf.concat(scores, 1), scores[0].shape[1])  # [B, M]
    return tf.gather(tf.concat(tokens, 1), chosen, batch_dims=1), best


def _count(which):
    return tf.reduce_sum(tf.cast(which, tf.int32), axis=-1)


def _penalty(length, length_penalty, normalization):
    """What a sum of log-probabilities is divided by."""
    if normalization == "gnmt":
        return tf.pow((5.0 + length) / 6.0, tf.cast(length_penalty, tf.float32))
    return length if normalization == "average" else tf.ones_like(length)


def _ranked(state, scores, pad_id):
    """The best that have ended, and behind them the best that the limit cut, by their `scores`."""
    n_best = state.ended_scores.shape[1]
    places = tf.expand_dims(tf.range(n_best), 0)  # [1, M]
    ended = tf.expand_dims(_count(exists(state.ended_scores)), 1)  # [B, 1]
    rows = tf.where(places < ended, places, places - ended + n_best)  # [B, M]
    scores = tf.concat([state.ended_scores, scores], 1)  # [B, M + N]
    scores = tf.gather(scores, rows, batch_dims=1)  # [B, M]
    tokens = tf.concat([state.ended_tokens, state.tokens], 1)  # [B, M + N, L]
    tokens = tf.gather(tokens, rows, batch_dims=1)  # [B, M, L]
    return tf.where(exists(tf.expand_dims(scores, 2)), tokens, pad_id), scores


def check_beam(beam_size, n_best, length_penalty, normalization):
    """Raises unless `beam_decode` takes these. The values of tensors cannot be checked here."""
    if beam_size < 1:
        raise ValueError(f"`beam_size` must be at least 1. Received: beam_size={beam_size}.")
    if not 1 <= n_best <= beam_size:
        raise ValueError(
            "`n_best` must be between 1 and `beam_size`. "
            f"Received: n_best={n_best}, beam_size={beam_size}."
        )
    if normalization not in NORMALIZATIONS:
        raise ValueError(
            f"`normalization` must be one of {', '.join(NORMALIZATIONS)}. "
            f"Received: normalization={normalization!r}."
        )
    if isinstance(length_penalty, numbers.Real) and not length_penalty >= 0:
        raise ValueError(
            f"`length_penalty` must be at least 0. Received: length_penalty={length_penalty}."
        )
