"""Masks, written as matrices: 1 where a query may attend to a key."""

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.layers.masks import causal_mask, padding_mask


def test_padding_mask():
    tokens = np.array([[5, 9, 4, 0, 0], [8, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    expected = [
        [[1, 1, 1, 0, 0]],
        [[1, 0, 0, 0, 0]],
        [[0, 0, 0, 0, 0]],
    ]
    mask = padding_mask(tokens, pad_id=0)
    assert mask.dtype == "bool"
    np.testing.assert_array_equal(mask, expected)


def test_padding_mask_of_another_pad_id():
    """The pad id decides, not the place: here id 0 is a word, and padding may be anywhere."""
    tokens = np.array([[9, 0, 4], [0, 9, 9]])
    np.testing.assert_array_equal(padding_mask(tokens, pad_id=9), [[[0, 1, 1]], [[1, 0, 0]]])


def test_causal_mask():
    expected = [
        [
            [1, 0, 0, 0, 0],
            [1, 1, 0, 0, 0],
            [1, 1, 1, 0, 0],
            [1, 1, 1, 1, 0],
            [1, 1, 1, 1, 1],
        ]
    ]
    mask = causal_mask(5)
    assert mask.dtype == "bool"
    np.testing.assert_array_equal(mask, expected)


def test_causal_mask_of_one_position():
    np.testing.assert_array_equal(causal_mask(1), [[[1]]])


def test_both_masks_combined():
    """The mask of a causal self-attention over a sentence of three tokens and one pad."""
    allowed = keras.ops.logical_and(causal_mask(4), padding_mask(np.array([[7, 8, 9, 0]]), 0))
    expected = [
        [
            [1, 0, 0, 0],
            [1, 1, 0, 0],
            [1, 1, 1, 0],
            [1, 1, 1, 0],
        ]
    ]
    np.testing.assert_array_equal(allowed, expected)


def test_length_known_only_at_run_time(jit_compile=True):
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)], jit_compile=jit_compile)
    def masks(tokens):
        return padding_mask(tokens, 0), causal_mask(tf.shape(tokens)[1])

    for length in (2, 3):
        padding, causal = masks(np.array([[4] * (length - 1) + [0]], "int32"))
        np.testing.assert_array_equal(padding, [[[1] * (length - 1) + [0]]])
        np.testing.assert_array_equal(causal, [np.tri(length)])
