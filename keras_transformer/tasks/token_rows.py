"""Rows of token ids that come from elsewhere: which are right, and what is made of the others."""

import tensorflow as tf


def right_rows(source, ids, separators=0):
    """Returns which rows are the ids of a text's pieces, `eos_id` once, and then padding, `[B]`.

    Args:
        source: Token ids `[B, S]`, int32.
        ids: What has `pad_id`, `bos_id`, `eos_id` and `vocab_size`, such as a configuration.
        separators: How often `bos_id` is in a row.
    """
    positions = tf.range(source.shape[1])  # [S]
    real = tf.not_equal(source, ids.pad_id)  # [B, S]
    length = tf.reduce_sum(tf.cast(real, tf.int32), axis=1, keepdims=True)  # [B, 1]
    right = tf.equal(real, positions < length)  # padding at the end only
    right &= tf.equal(tf.equal(source, ids.eos_id), tf.equal(positions, length - 1))
    right &= (source >= 0) & (source < ids.vocab_size)
    if ids.bos_id not in (ids.pad_id, ids.eos_id):
        begins = tf.cast(tf.equal(source, ids.bos_id), tf.int32)
        right &= tf.equal(tf.reduce_sum(begins, axis=1, keepdims=True), separators)
    return tf.reduce_all(right, axis=1) & (tf.squeeze(length, 1) > 0)


def empty_where_wrong(source, right, ids):
    """Returns the rows with an empty text for wrong ones: no id reaches a table that lacks it.

    Args:
        source: Token ids `[B, S]`, int32.
        right: Boolean `[B]`.
        ids: See `right_rows`.
    """
    first = tf.equal(tf.range(source.shape[1]), 0)
    empty = tf.where(first, ids.eos_id, ids.pad_id)  # [S]
    return tf.where(tf.expand_dims(right, 1), source, empty)


def checked_ids(source, tokenizer, longest):
    """Returns `[B, S]` with padding after each `eos_id`, as wide as its longest row, at least 1.

    Args:
        source: Token ids `[B, S]`, int32, each row with an `eos_id`; whatever follows is ignored:
            TensorFlow Serving pads the rows of a batch with the first id of a request, not with
            `pad_id`.
        tokenizer: The `Tokenizer`.
        longest: Most ids of a row, `eos_id` included.
    """
    source = tf.pad(source, [[0, 0], [0, 1]], constant_values=tokenizer.pad_id)
    is_end = tf.cast(tf.equal(source, tokenizer.eos_id), tf.int32)
    before = tf.cumsum(is_end, axis=1, exclusive=True)  # [B, S + 1], ends before each position
    source = tf.where(tf.equal(before, 0), source, tokenizer.pad_id)
    lengths = tf.argmax(is_end, axis=1, output_type=tf.int32) + 1  # [B]
    checks = {
        f"`source` must end each row in the id {tokenizer.eos_id}.": tf.equal(
            tf.reduce_max(is_end, axis=1), 1
        ),
        f"`source` must have at most {longest} ids in a row.": lengths <= longest,
        f"`source` must hold ids from 0 to {tokenizer.vocab_size - 1}.": tf.logical_and(
            source >= 0, source < tokenizer.vocab_size
        ),
    }
    with tf.control_dependencies(assertions(checks)):
        return source[:, : tf.maximum(tf.reduce_max(lengths), 1)]


def assertions(checks):
    """Returns an operation for each message that fails with it unless all of a condition is true.

    Args:
        checks: Dictionary from messages to boolean tensors.
    """
    return [
        tf.debugging.Assert(tf.reduce_all(condition), [message])
        for message, condition in checks.items()
    ]
