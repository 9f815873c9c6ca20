"""Rows of ragged tensors, against TensorFlow's own functions, and their memory."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.text.ragged_rows import repeated, row_ids, row_sums

ROWS = [[], [3, 1, 4], [], [], [1, 5], [9], [], []]


@pytest.mark.parametrize("rows", [ROWS, ROWS[1:2], [[], []], []])
def test_rows_are_those_of_tensorflow(rows):
    ragged = tf.ragged.constant(rows, tf.int32, ragged_rank=1)
    assert row_ids(ragged).numpy().tolist() == ragged.value_rowids().numpy().tolist()
    assert row_ids(ragged).dtype == ragged.value_rowids().dtype
    assert row_sums(ragged).numpy().tolist() == [sum(row) for row in rows]


@pytest.mark.parametrize("counts", [[2, 0, 3, 0, 1], [0, 0], []])
def test_values_are_repeated(counts):
    values = np.arange(len(counts), dtype="int32") + 7
    found = repeated(values, tf.constant(counts, tf.int64)).numpy()
    np.testing.assert_array_equal(found, np.repeat(values, counts))
