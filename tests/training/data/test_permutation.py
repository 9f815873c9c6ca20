"""Permutations without a table: every number once, all orders equally often."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.training.data.permutation import key_of, permuted, uniform


@tf.function(
    input_signature=[
        tf.TensorSpec([None], tf.int64),
        tf.TensorSpec([], tf.int64),
        tf.TensorSpec([], tf.uint64),
    ]
)
def compiled(numbers, size, key):
    return permuted(numbers, size, key)


def order(size, *numbers):
    return compiled(np.arange(size), size, key_of(*numbers)).numpy()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 9, 10, 30, 97, 100, 1025, 65_537])
def test_it_is_a_permutation(size):
    np.testing.assert_array_equal(np.sort(order(size, 3, 1)), np.arange(size))


def test_numbers_of_several_sizes_are_permuted_together():
    numbers, sizes = np.array([0, 1, 2, 0, 1, 0]), np.array([3, 3, 3, 2, 2, 1])
    keys = key_of(5, sizes)
    together = permuted(numbers, sizes, keys).numpy()
    alone = [permuted([n], [s], k).numpy()[0] for n, s, k in zip(numbers, sizes, keys, strict=True)]
    assert together.tolist() == alone
    assert sorted(together[:3]) == [0, 1, 2] and sorted(together[3:5]) == [0, 1]


def test_part_of_an_order_equals_the_whole():
    whole = order(36_000, 1, 2)
    part = compiled(np.arange(700, 900), 36_000, key_of(1, 2)).numpy()
    np.testing.assert_array_equal(part, whole[700:900])


def test_orders_of_very_many_numbers():
    size = 36 * 10**9
    numbers = np.random.default_rng(0).integers(0, size, 5000)
    moved = compiled(numbers, size, key_of(1, 2)).numpy()
    assert len(set(moved)) == len(set(numbers)) and moved.min() >= 0 and moved.max() < size
    quarters = np.bincount(moved // (size // 4), minlength=4)
    assert (abs(quarters - 1250) < 5 * np.sqrt(1250)).all()


def test_every_seed_and_epoch_has_its_own_order():
    orders = {tuple(order(30, *pair)) for pair in itertools.product(range(12), repeat=2)}
    assert len(orders) == 144


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_all_orders_are_equally_frequent(size):
    """Chi-square over all `size!` orders; five standard deviations."""
    keys = key_of(7, np.arange(24_000))[:, None]
    moved = permuted(np.tile(np.arange(size), (24_000, 1)), size, keys).numpy()
    every = list(itertools.permutations(range(size)))
    places = (moved * size ** np.arange(size)).sum(axis=1)
    known = {sum(n * size**i for i, n in enumerate(one)): 0 for one in every}
    counts = known | dict(zip(*np.unique(places, return_counts=True), strict=True))
    assert len(counts) == len(every)
    expected = 24_000 / len(every)
    squares = sum((count - expected) ** 2 / expected for count in counts.values())
    degrees = len(every) - 1
    assert squares < degrees + 5 * np.sqrt(2 * degrees)


def test_every_number_is_equally_often_in_every_place():
    size, orders = 30, 6000
    keys = key_of(np.arange(orders), 4)[:, None]
    moved = permuted(np.tile(np.arange(size), (orders, 1)), size, keys).numpy()
    counts = np.stack([np.bincount(column, minlength=size) for column in moved.T])
    expected = orders / size
    squares = ((counts - expected) ** 2 / expected).sum()
    degrees = (size - 1) ** 2
    assert abs(squares - degrees) < 5 * np.sqrt(2 * degrees)
    pairs = np.bincount(moved[:, 3] * size + moved[:, 4], minlength=size**2).reshape(size, size)
    expected = orders / size / (size - 1)
    apart = pairs[~np.eye(size, dtype=bool)]
    squares, degrees = ((apart - expected) ** 2 / expected).sum(), len(apart) - 1
    assert abs(squares - degrees) < 5 * np.sqrt(2 * degrees), "neighbours are independent"


def test_uniform_numbers_fill_the_interval():
    drawn = uniform(key_of(3, np.arange(20_000))).numpy()
    counts = np.histogram(drawn, 20, (0, 1))[0]
    assert drawn.min() >= 0 and drawn.max() < 1
    assert ((counts - 1000) ** 2 / 1000).sum() < 19 + 5 * np.sqrt(38)
