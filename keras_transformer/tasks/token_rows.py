"""Checks of rows of token ids that come from outside, and replacement of invalid ones."""

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


def valid_rows(source, ids, separators=0, ends=1) -> Tensor:
    """Returns which rows are valid, boolean `[B]`: ids of a text, then `eos_id`, then padding.

    Args:
        source: Token ids `[B, S]`, int32.
        ids: A tokenizer or a configuration, with `pad_id`, `bos_id`, `eos_id` and `vocab_size`.
        separators: Number of times that `bos_id` occurs in a valid row. `None`: any number.
        ends: Number of times that `eos_id` occurs in a valid row.
    """
    positions = _positions(source)  # [S]
    real = tf.not_equal(source, ids.pad_id)  # [B, S]
    length = tf.reduce_sum(tf.cast(real, tf.int32), axis=1, keepdims=True)  # [B, 1]
    valid = tf.equal(real, positions < length)  # padding at the end only
    is_end = tf.equal(source, ids.eos_id)
    valid &= is_end | tf.not_equal(positions, length - 1)
    count = tf.reduce_sum(tf.cast(is_end, tf.int32), axis=1, keepdims=True)
    valid &= tf.equal(count, ends)
    valid &= (source >= 0) & (source < ids.vocab_size)
    if separators is not None and ids.bos_id not in (ids.pad_id, ids.eos_id):
        begins = tf.cast(tf.equal(source, ids.bos_id), tf.int32)
        valid &= tf.equal(tf.reduce_sum(begins, axis=1, keepdims=True), separators)
    return tf.reduce_all(valid, axis=1) & (tf.squeeze(length, 1) > 0)


def empty_where_invalid(source, valid, ids) -> Tensor:
    """Replaces invalid rows by empty texts, so that no id is out of range of an embedding table.

    Args:
        source: Token ids `[B, S]`, int32.
        valid: Boolean `[B]`.
        ids: See `valid_rows`.
    """
    first = tf.equal(_positions(source), 0)
    empty = tf.where(first, ids.eos_id, ids.pad_id)  # [S]
    return tf.where(tf.expand_dims(valid, 1), source, empty)


def checked_ids(source, tokenizer, longest, ends=1) -> Tensor:
    """Checks rows of token ids, and returns them with padding after the last `eos_id`, `[B, S]`.

    The result is as wide as its longest row, at least 1.

    Args:
        source: Token ids `[B, S]`, int32, each row with its `eos_id`s. Ids after them are ignored,
            because TensorFlow Serving pads the rows of a batch with the first id of a request, not
            with `pad_id`.
        tokenizer: The `Tokenizer`.
        longest: Maximum number of ids in a row, including `eos_id`.
        ends: Number of times that `eos_id` occurs in a row.
    """
    source = tf.pad(source, [[0, 0], [0, 1]], constant_values=tokenizer.pad_id)
    is_end = tf.cast(tf.equal(source, tokenizer.eos_id), tf.int32)
    before = tf.cumsum(is_end, axis=1, exclusive=True)  # [B, S + 1], ends before each position
    source = tf.where(before < ends, source, tokenizer.pad_id)
    complete = tf.reduce_sum(is_end, axis=1) >= ends  # [B]
    lengths = tf.where(complete, tf.reduce_sum(tf.cast(before < ends, tf.int32), axis=1), 1)
    times = "" if ends == 1 else f", its number {ends} in the row"
    checks = {
        f"`source` must end each row in the id {tokenizer.eos_id}{times}.": complete,
        f"`source` must have at most {longest} ids in a row.": lengths <= longest,
        f"`source` must hold ids from 0 to {tokenizer.vocab_size - 1}.": tf.logical_and(
            source >= 0, source < tokenizer.vocab_size
        ),
    }
    if tokenizer.languages is not None:
        rule = f"`source` must begin each row with {tokenizer.languages.front_rule}."
        checks[rule] = tokenizer.languages.begins_with(source)
    with tf.control_dependencies(assertions(checks)):
        return source[:, : tf.maximum(tf.reduce_max(lengths), 1)]


def assertions(checks) -> "list[tf.Operation]":
    """Returns an operation for each condition that fails with a message unless it is all true.

    Args:
        checks: Dictionary from messages to conditions, boolean tensors.
    """
    return [
        tf.debugging.Assert(tf.reduce_all(condition), [message])
        for message, condition in checks.items()
    ]


def _positions(source):
    """Returns the positions of rows, `[S]`; a constant if S is known, as LiteRT needs it."""
    length = source.shape[1]
    return tf.range(tf.shape(source)[1] if length is None else length)
