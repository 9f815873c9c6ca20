"""Activations in training against their formulas in float64, and the layers that use them."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import B, D, F, S, T, normal, randomise, to_numpy

from keras_transformer import FeedForward, activations
from keras_transformer.layers import FrameEmbedding, feed_forward
from keras_transformer.layers.feed_forward import in_training

NAMES = ["gelu", "gelu_tanh"]


def exact(name, x):
    """Returns values and slopes in float64."""
    if name == "gelu":
        below = np.array([math.erfc(-number / math.sqrt(2)) / 2 for number in x])
        return x * below, below + x * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    small = 1e-30  # the imaginary part of a step: the slope without a difference
    z = x + small * 1j
    value = z / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
    return value.real, value.imag / small


def value_and_slope(activation, x, upstream):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = activation(x)
    return y, tape.gradient(y, x, upstream)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    # In 16 bits: two roundings, of the slope and of its product with the upstream gradient.
    [("float64", 1e-14), ("float32", 2e-6), ("bfloat16", 2**-8), ("float16", 2**-11)],
)
def test_values_and_slopes_are_exact_but_for_rounding(name, dtype, tolerance):
    x, upstream = tf.linspace(-7.0, 7.0, 401), tf.sin(tf.linspace(0.0, 9.0, 401))
    x, upstream = tf.cast(x, dtype), tf.cast(upstream, dtype)
    ours = value_and_slope(in_training(activations.get(name), training=True), x, upstream)
    value, slope = exact(name, to_numpy(x))
    for own, expected in zip(ours, (value, slope * to_numpy(upstream)), strict=True):
        assert own.dtype == dtype
        scale = np.maximum(np.abs(expected), 1 if dtype in ("float64", "float32") else 2.0**-8)
        assert np.max(np.abs(tf.cast(own, "float64") - expected) / scale) <= 2 * tolerance


@pytest.mark.parametrize("name", NAMES)
def test_extreme_inputs_have_finite_slopes(name):
    x = tf.constant([-1e4, -60.0, 0.0, 60.0, 1e4])
    value, slope = value_and_slope(in_training(activations.get(name), training=True), x, tf.ones(5))
    np.testing.assert_allclose(value, [0, 0, 0, 60, 1e4], atol=1e-6)
    np.testing.assert_allclose(slope, [0, 0, 0.5, 1, 1], atol=1e-6)


def test_activations_stay_themselves_otherwise():
    for name in NAMES:
        for training in (False, None):
            assert in_training(activations.get(name), training) is activations.get(name)
    for name in ("relu", "tanh", "linear"):
        assert in_training(activations.get(name), training=True) is activations.get(name)
    assert in_training(activations.get("silu"), training=True) is keras.activations.silu


def layers():
    x, frames = normal(B, T, D), normal(B, S, D)
    return {
        "feed-forward": (FeedForward(F, activation="gelu"), x),
        "gated": (FeedForward(F, activation="gelu", kind="gated"), x),
        "frames": (FrameEmbedding(D, position="none"), frames),
    }


@pytest.mark.parametrize("name", layers())
def test_layers_use_them_in_training_only(monkeypatch, name):
    layer, x = layers()[name]
    layer(x)
    randomise(layer)
    expected = to_numpy(layer(x))
    np.testing.assert_allclose(layer(x, training=True), expected, atol=5e-6)
    monkeypatch.setitem(feed_forward.FAST, keras.activations.gelu, lambda x: x + 100)
    np.testing.assert_array_equal(layer(x), expected)
    assert np.abs(to_numpy(layer(x, training=True)) - expected).max() > 1
