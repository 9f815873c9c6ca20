"""Pseudo-random permutations that are computed element by element, without a table.

The order of an epoch of 36 million examples is a function of seed and epoch. No array of that size
is drawn, sorted or kept, and training can resume anywhere in it at no cost.
"""

from typing import Any

import tensorflow as tf

from keras_transformer.tensors import Tensor

ROUNDS = 16  # with fewer rounds, not all orders of five numbers are equally frequent
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio


def key_of(*numbers) -> Tensor:
    """Returns a key, uint64, that depends on some integers and their order.

    Args:
        *numbers: Non-negative integers or integer tensors, whose shapes broadcast.
    """
    key: Any = tf.constant(0, tf.uint64)
    golden = tf.constant(_GOLDEN, tf.uint64)
    for number in numbers:
        key = _mixed(key + golden + tf.cast(number, tf.uint64))
    return key


def uniform(key) -> Tensor:
    """Returns a pseudo-random number for each key, at least 0 and below 1, float32."""
    return tf.cast(tf.bitwise.right_shift(key, tf.constant(40, tf.uint64)), tf.float32) * 2.0**-24


def permuted(numbers, sizes, key) -> Tensor:
    """Returns the images of numbers under a permutation, int64, each below its size.

    The permutation is an alternating Feistel network over a rectangle of at least `sizes` cells. A
    number is a cell: its column determines a shift of its row, then its row a shift of its column.
    A cell outside of the size goes through the network again ("cycle walking").

    Args:
        numbers: Integers, at least 0 and below `sizes`.
        sizes: Number of permuted numbers, broadcast to `numbers`.
        key: Result of `key_of`, broadcast to `numbers`.

    Reference: Black and Rogaway (2002), "Ciphers with Arbitrary Finite Domains".
    """
    numbers, sizes = tf.cast(numbers, tf.int64), tf.cast(sizes, tf.int64)
    rows = tf.cast(tf.math.ceil(tf.sqrt(tf.cast(sizes, tf.float64))), tf.int64)
    columns = -(-sizes // rows)

    def again(cells):
        moved = _through(cells, rows, columns, key)
        return (tf.where(cells >= sizes, moved, cells),)

    first = _through(numbers, rows, columns, key)
    (cells,) = tf.while_loop(lambda cells: tf.reduce_any(cells >= sizes), again, (first,))
    return cells


def _through(cells, rows, columns, key):
    """Returns the cells after all rounds.

    It is a loop, because building a graph of all rounds takes long, and not a `tf.function`,
    because `tf.data` would look for it on the first of several workers.
    """

    def both(number, row, column):
        row = (row + _number(column, key, number)) % rows
        column = (column + _number(row, key, number + 1)) % columns
        return number + 2, row, column

    start = (0, cells // columns, cells % columns)
    _, row, column = tf.while_loop(lambda number, *_: number < ROUNDS, both, start)
    return row * columns + column


def _number(value, key, number):
    """Returns a pseudo-random number for a value, int64, at least 0."""
    added = tf.cast(number + 1, tf.uint64) * tf.constant(_GOLDEN, tf.uint64)
    bits = _mixed(tf.bitwise.bitwise_xor(tf.cast(value, tf.uint64) + added, key))
    return tf.cast(tf.bitwise.right_shift(bits, tf.constant(1, tf.uint64)), tf.int64)


def _mixed(bits):
    """Returns mixed bits of uint64: each bit affects about half of the bits (SplitMix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        shifted = tf.bitwise.right_shift(bits, tf.constant(shift, tf.uint64))
        bits = tf.bitwise.bitwise_xor(bits, shifted)
        if factor > 1:
            bits = bits * tf.constant(factor, tf.uint64)
    return bits
