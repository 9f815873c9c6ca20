"""The loop of the searches that follow one hypothesis: greedy search and sampling."""

import numbers
import typing

import tensorflow as tf

from keras_transformer.decoding.lengths import check_lengths, limit_of


class _State(typing.NamedTuple):
    index: tf.Tensor  # tokens that every sentence which has not ended has
    last: tf.Tensor  # [B], the last of them
    ended: tf.Tensor  # [B]
    tokens: tf.Tensor  # [B, L]
    scores: tf.Tensor  # [B], sums of log-probabilities
    cache: tuple  # of every block two tensors [B, H, L, K]


def decode_single(model, source, choose, max_length=None, cache_length=None):
    """Says one token after the other until every sentence has ended.

    Args:
        model: A `Transformer`.
        source: Token ids `[B, S]`.
        choose: Function of the logits `[B, V]` and the number of the step, which returns the next
            token `[B]` and its logit `[B]`.
        max_length: See `greedy_decode`.
        cache_length: See `greedy_decode`.

    Returns:
        Token ids `[B, L]` and scores `[B]`, as `greedy_decode`.
    """
    config = model.config
    length = check_lengths(config.max_length, 1, max_length, cache_length)
    source = tf.convert_to_tensor(source, tf.int32)
    batch = tf.shape(source)[0]
    # A limit that is the cache's costs nothing: the loop ends there by itself.
    unlimited = max_length is None or (
        isinstance(max_length, numbers.Integral) and max_length == length
    )
    limit = None if unlimited else limit_of(max_length, length, batch)
    memory, memory_allowed = model.encode(source)
    cache, memory_heads = model.start(memory, length)

    def running(state):
        return tf.logical_and(state.index < length, tf.logical_not(tf.reduce_all(state.ended)))

    def step(state):
        index, ended = state.index, state.ended
        logits, cache = model.step(state.last, state.cache, index, memory_heads, memory_allowed)
        best, logit = choose(logits, index)  # [B] each
        gain = logit - tf.reduce_logsumexp(logits, axis=-1)  # [B]
        token = tf.where(ended, config.pad_id, best)
        here = tf.equal(tf.range(length), index)  # [L]
        over = tf.equal(token, config.eos_id)
        if limit is not None:
            over = tf.logical_or(over, index + 1 >= limit)
        state = _State(
            index=index + 1,
            last=token,
            ended=tf.logical_or(ended, over),
            tokens=tf.where(here, tf.expand_dims(token, 1), state.tokens),
            scores=state.scores + tf.where(ended, 0.0, tf.cast(gain, tf.float32)),
            cache=cache,
        )
        return (state,)

    beginning = _State(
        index=tf.constant(0),
        last=tf.fill([batch], config.bos_id),
        ended=tf.zeros([batch], tf.bool),
        tokens=tf.fill([batch, length], config.pad_id),
        scores=tf.zeros([batch], tf.float32),
        cache=cache,
    )
    (state,) = tf.while_loop(running, step, (beginning,))
    return state.tokens, state.scores
