"""Token ids of a request: what is right, and what is made of them."""

import tensorflow as tf


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
