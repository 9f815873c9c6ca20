"""How probable a model finds a translation that is given."""

import tensorflow as tf


def score(model, source, target):
    """Returns the log-probabilities of the tokens of translations, all in one pass.

    With the output of a search for a target, the sum is the search's score, without a penalty for
    the length.

    Args:
        model: A `Transformer`.
        source: Token ids `[B, S]`, integer, each row ending in `eos_id` and then padding.
        target: Token ids `[B, T]`, integer, of the same form; without `bos_id`. A row that does not
            end in `eos_id` is scored as the beginning of a translation.

    Returns:
        Log-probabilities `[B, T]`, float32, 0 for padding; and their sums `[B]`.
    """
    config = model.config
    source = tf.convert_to_tensor(source, tf.int32)
    target = tf.convert_to_tensor(target, tf.int32)
    begin = tf.fill([tf.shape(target)[0], 1], config.bos_id)
    shifted = tf.concat([begin, target[:, :-1]], axis=1)  # [B, T]
    logits = model({"source": source, "target": shifted}, training=False)  # [B, T, V]
    said = tf.gather(logits, target, batch_dims=2)  # [B, T]
    # Of [B, T, V] only the logits: a log-softmax would be as large once more.
    gains = said - tf.reduce_logsumexp(logits, axis=-1)  # [B, T]
    gains = tf.where(tf.equal(target, config.pad_id), 0.0, tf.cast(gains, tf.float32))
    return gains, tf.reduce_sum(gains, axis=1)
