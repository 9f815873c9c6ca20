"""Local self-attention in blocks against attention to all positions with the mask of the window."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from support import normal, randomise

from keras_transformer import MultiHeadSelfAttention
from keras_transformer.layers.local import LocalBlocks
from keras_transformer.layers.masks import window_mask

WIDTH = 16


def pair(window, causal=False, **options):
    """A layer with a window and one without, with the same weights."""
    layers = [
        MultiHeadSelfAttention(4, causal=causal, window=size, **options) for size in (window, None)
    ]
    for layer in layers:
        layer.build((None, None, WIDTH))
    randomise(layers[0], seed=1)
    layers[1].set_weights(layers[0].get_weights())
    return layers


def padding(kind, batch, length):
    """Keys that are not padding, `[B, 1, T]`."""
    real = np.ones((batch, 1, length), bool)
    if kind == "right":
        real[0, :, length // 3 :] = False
    elif kind == "left":
        real[0, :, : length // 3] = False
    elif kind == "whole row":
        real[0] = False
    elif kind == "shared":
        real = real[:1]
        real[:, :, -7:] = False
    return None if kind == "none" else real


def masked(whole, x, window, mask, **call):
    places = np.arange(x.shape[1])
    near = window_mask(places, places, window)
    return whole(x, attention_mask=near if mask is None else near & mask, **call)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("window", "length", "kind", "options"),
    [
        (3, 480, "right", {}),
        (40, 497, "none", {"position": "rotary"}),
        (1, 465, "left", {"num_key_value_heads": 2}),
        slow(33, 500, "shared", {"score": "additive"}),
        slow(3, 481, "whole row", {"d_v": 6, "query_key_norm": "rms"}),
    ],
)
def test_blocks_equal_the_mask_of_the_window(causal, window, length, kind, options):
    near, whole = pair(window, causal, **options)
    assert near.blocks.pays(length)
    x, mask = normal(2, length, WIDTH, seed=2), padding(kind, 2, length)
    with tf.GradientTape() as tape:
        got = near(x, attention_mask=mask, training=True)
        loss = tf.reduce_sum(tf.sin(got))
    gradients = tape.gradient(loss, near.trainable_variables)
    with tf.GradientTape() as tape:
        expected = masked(whole, x, window, mask, training=True)
        loss = tf.reduce_sum(tf.sin(expected))
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-6)
    for one, other in zip(gradients, tape.gradient(loss, whole.trainable_variables), strict=True):
        one, other = tf.convert_to_tensor(one), tf.convert_to_tensor(other)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5 * float(tf.reduce_max(abs(other))))


@pytest.mark.parametrize("jit", [False, slow(True)])
def test_a_graph_chooses_by_the_number_of_positions(jit):
    near, whole = pair(3)
    call = tf.function(near, input_signature=[tf.TensorSpec([None, None, WIDTH])], jit_compile=jit)
    for length in (1, 40, 456, 457, 600):
        x = normal(2, length, WIDTH, seed=length)
        np.testing.assert_allclose(call(x), masked(whole, x, 3, None), rtol=0, atol=2e-6)


def test_the_weights_of_all_keys_and_masks_of_pairs_do_not_use_blocks():
    near, whole = pair(3)
    x = normal(1, 470, WIDTH, seed=3)
    out, weights = near(x, return_attention_scores=True)
    assert weights.shape == (1, 4, 470, 470)
    np.testing.assert_allclose(near(x), out, rtol=0, atol=2e-6)
    texts = (np.arange(470)[:, None] < 235) == (np.arange(470) < 235)  # two packed texts
    expected = masked(whole, x, 3, texts[None])
    np.testing.assert_allclose(near(x, attention_mask=texts[None]), expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("position", ["alibi", "relative", "t5"])
def test_positions_that_add_to_scores_count(position):
    near, whole = pair(5, position=position)
    x = normal(1, 470, WIDTH, seed=4)
    np.testing.assert_allclose(near(x), masked(whole, x, 5, None), rtol=0, atol=2e-6)


def test_a_hidden_start_stays_hidden():
    near, whole = pair(3, causal=True, hides_start=True)
    x = normal(1, 470, WIDTH, seed=5)
    np.testing.assert_allclose(near(x), masked(whole, x, 3, None), rtol=0, atol=2e-6)


def test_what_is_far_has_no_effect_on_an_output():
    layer, _ = pair(7)
    x = tf.Variable(normal(1, 500, WIDTH, seed=6))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x)[:, 90])
    reached = np.flatnonzero(np.abs(tape.gradient(loss, x)[0]).sum(axis=1))
    assert reached.tolist() == list(range(83, 98))


@pytest.mark.parametrize("window", [1, 32, 64])
def test_blocks_are_as_large_as_the_window(window):
    blocks = LocalBlocks(window, causal=False)
    assert blocks.size >= window and not blocks.pays(blocks.parts * blocks.size)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "float64"])
def test_other_dtypes(dtype):
    near, whole = (MultiHeadSelfAttention(4, window=size, dtype=dtype) for size in (3, None))
    x = keras.ops.cast(normal(1, 470, WIDTH, seed=7), near.compute_dtype)
    near(x), whole(x)
    whole.set_weights(near.get_weights())
    got, expected = near(x), masked(whole, x, 3, None)
    assert got.dtype == expected.dtype
    tolerance = 1e-12 if dtype == "float64" else 2e-2
    np.testing.assert_allclose(
        np.asarray(got, "float64"), np.asarray(expected, "float64"), rtol=0, atol=tolerance
    )
