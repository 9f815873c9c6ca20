"""Pseudo-random permutations that are computed for any number alone, without a table.

The order of an epoch of 36 million examples is a function of seed and epoch: no array of that size
is drawn, sorted or kept, and an order continues anywhere at no cost.
"""

import tensorflow as tf

ROUNDS = 16  # fewer do not give all orders of five numbers equally often
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio


def key_of(*numbers):
    """Returns a key, uint64, that differs for different integers in another order.

    Args:
        *numbers: Integers or integer tensors from 0, whose shapes broadcast.
    """
    key = tf.constant(0, tf.uint64)
    for number in numbers:
        key = _mixed(key + tf.constant(_GOLDEN, tf.uint64) + tf.cast(number, tf.uint64))
    return key


def uniform(key):
    """Returns a number from 0 to below 1 for each key, float32."""
    return tf.cast(tf.bitwise.right_shift(key, tf.constant(40, tf.uint64)), tf.float32) * 2.0**-24


def permuted(numbers, sizes, key):
    """Returns where a permutation puts numbers, int64, each below its size.

    An alternating Feistel network over a rectangle of at least `sizes` cells, in which a number is
    a cell: its column decides by how much its row is moved, then its row decides about the column.
    Whoever lands outside of the size goes through the network once more ("cycle walking").

    Args:
        numbers: Integers from 0 to below `sizes`.
        sizes: How many numbers are permuted, broadcast to `numbers`.
        key: What `key_of` returned, broadcast to `numbers`.

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
    """The cells after all rounds.

    A loop, because a graph of all rounds takes long to make; and no `tf.function`, which `tf.data`
    would look for on the first of several workers.
    """

    def both(number, row, column):
        row = (row + _number(column, key, number)) % rows
        column = (column + _number(row, key, number + 1)) % columns
        return number + 2, row, column

    start = (0, cells // columns, cells % columns)
    _, row, column = tf.while_loop(lambda number, *_: number < ROUNDS, both, start)
    return row * columns + column


def _number(value, key, number):
    """A pseudo-random number of a value, int64 from 0."""
    added = tf.cast(number + 1, tf.uint64) * tf.constant(_GOLDEN, tf.uint64)
    bits = _mixed(tf.bitwise.bitwise_xor(tf.cast(value, tf.uint64) + added, key))
    return tf.cast(tf.bitwise.right_shift(bits, tf.constant(1, tf.uint64)), tf.int64)


def _mixed(bits):
    """The bits of uint64, each of which decides about half of all others (SplitMix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        shifted = tf.bitwise.right_shift(bits, tf.constant(shift, tf.uint64))
        bits = tf.bitwise.bitwise_xor(bits, shifted)
        if factor > 1:
            bits = bits * tf.constant(factor, tf.uint64)
    return bits
