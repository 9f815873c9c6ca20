"""Greedy decoding with a key/value cache."""

import tensorflow as tf


def greedy_decode(model, source, max_length=None):
    """Takes the most probable token at each step, until every sentence has ended.

    One `tf.while_loop` with a cache of fixed size: works eagerly, in a `tf.function`, under XLA, in
    a SavedModel and in LiteRT. The result of a sentence does not depend on the others in its batch.

    Args:
        model: A `Transformer`.
        source: Token ids `[B, S]`, integer, each row ending in `eos_id` and then padding.
        max_length: Longest output in tokens, `eos_id` included. `None`: the model's `max_length`.

    Returns:
        Token ids `[B, max_length]`, int32, each row ending in `eos_id` and then padding (without
        `eos_id` where the limit came first), and scores `[B]`, float32: the sum of the
        log-probabilities of the tokens, `eos_id` included.

    Raises:
        ValueError: If `max_length` is not between 1 and the model's `max_length`.
    """
    config = model.config
    max_length = config.max_length if max_length is None else max_length
    if not 1 <= max_length <= config.max_length:
        raise ValueError(
            f"`max_length` must be between 1 and the model's {config.max_length}. "
            f"Received: max_length={max_length}."
        )
    source = tf.convert_to_tensor(source, tf.int32)
    memory, memory_allowed = model.encode(source)
    cache, memory_heads = model.start(memory, max_length)
    batch = tf.shape(source)[0]

    def running(index, last, ended, tokens, scores, cache):
        return tf.logical_and(index < max_length, tf.logical_not(tf.reduce_all(ended)))

    def step(index, last, ended, tokens, scores, cache):
        logits, cache = model.step(last, cache, index, memory_heads, memory_allowed)  # [B, V]
        best = tf.argmax(logits, axis=-1, output_type=tf.int32)  # [B]
        gain = tf.reduce_max(logits, axis=-1) - tf.reduce_logsumexp(logits, axis=-1)  # [B]
        token = tf.where(ended, config.pad_id, best)
        scores = scores + tf.where(ended, 0.0, tf.cast(gain, tf.float32))
        here = tf.equal(tf.range(max_length), index)  # [L]
        tokens = tf.where(here, tf.expand_dims(token, 1), tokens)  # [B, L]
        ended = tf.logical_or(ended, tf.equal(token, config.eos_id))
        return index + 1, token, ended, tokens, scores, cache

    _, _, _, tokens, scores, _ = tf.while_loop(
        running,
        step,
        (
            tf.constant(0),
            tf.fill([batch], config.bos_id),
            tf.zeros([batch], tf.bool),
            tf.fill([batch, max_length], config.pad_id),
            tf.zeros([batch], tf.float32),
            cache,
        ),
    )
    return tokens, scores
