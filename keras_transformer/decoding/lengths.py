"""How long an output may get: limits that are checked, and limits that are tensors."""

import numbers

import tensorflow as tf


def check_lengths(longest, min_length=1, max_length=None, cache_length=None):
    """Returns the length of the cache. The values of tensors cannot be checked here."""
    lengths = {"cache_length": cache_length, "max_length": max_length, "min_length": min_length}
    lengths = {name: n for name, n in lengths.items() if isinstance(n, numbers.Integral)}
    most = longest
    for name, length in lengths.items():
        if not 1 <= length <= most:
            raise ValueError(f"`{name}` must be between 1 and {most}. Received: {name}={length}.")
        most = length
    return lengths.get("cache_length", lengths.get("max_length", longest))


def limit_of(max_length, cache_length, batch):
    """The longest output of each sentence, `[B]`."""
    limit = tf.cast(cache_length if max_length is None else max_length, tf.int32)
    limit = tf.reshape(tf.minimum(tf.maximum(limit, 1), cache_length), [-1])  # [B] or [1]
    return limit + tf.zeros([batch], tf.int32)
