"""Rows of different shapes as one array, for the runtimes of exports with fixed shapes."""

import numpy as np
import pytest

from keras_transformer.export.runtime import padded


@pytest.mark.parametrize(
    ("rows", "shape", "expected"),
    [
        ([np.float32(1), np.float32(2)], None, [1, 2]),
        ([[7, 8, 3], [3]], None, [[7, 8, 3], [3, 9, 9]]),
        ([[7, 3], [3]], [4], [[7, 3, 9, 9], [3, 9, 9, 9]]),
        ([(), ()], [1], [[9], [9]]),
        ([[[1], [2]], [[3, 4]]], None, [[[1, 9], [2, 9]], [[3, 4], [9, 9]]]),
    ],
    ids=["numbers", "rows", "a wider shape", "empty rows", "matrices"],
)
def test_every_axis_is_padded_at_its_end(rows, shape, expected):
    result = padded(rows, 9, shape)
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == np.asarray(rows[0]).dtype


def test_a_row_is_never_cut():
    with pytest.raises(ValueError, match="broadcast"):
        padded([[7, 8, 3]], 0, [2])
