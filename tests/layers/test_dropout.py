"""Dropout zeroes values at its rate, scales the others, and draws anew at each call."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.devices import assumed
from keras_transformer.layers.dropout import Dropout

SHAPE = (97, 101, 103)  # odd: two numbers are drawn at a time


@pytest.fixture(params=["CPU", "TPU"], autouse=True)
def device(request):
    """Dropout has another form on a CPU than on other devices."""
    with assumed(request.param):
        yield request.param


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.75])
def test_the_rate_the_scale_and_the_gradient(rate):
    x = tf.ones(SHAPE)
    layer = Dropout(rate, seed=1)
    with tf.GradientTape() as tape:
        tape.watch(x)
        out = layer(x, training=True)
    dropped = out.numpy() == 0
    count = dropped.size
    spread = np.sqrt(rate * (1 - rate) / count)
    assert abs(dropped.mean() - rate) < 4 * spread + 1 / 2**17
    np.testing.assert_allclose(out.numpy()[~dropped], 1 / (1 - rate), rtol=1e-4)
    assert abs(out.numpy().mean() - 1) < 4 * spread / (1 - rate)
    np.testing.assert_array_equal(tape.gradient(out, x), out)


def test_neighbours_and_calls_are_independent():
    layer = Dropout(0.5, seed=1)
    first, second = ((layer(tf.ones([2**16]), training=True).numpy() > 0) for _ in range(2))
    pairs = [(first, second), (first[::2], first[1::2]), (first[:-2:2], first[2::2])]
    for one, other in pairs:
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.03


def test_without_training_or_rate_nothing_changes():
    x = tf.random.normal([5, 7])
    np.testing.assert_array_equal(Dropout(0.5)(x), x)
    np.testing.assert_array_equal(Dropout(0.0)(x, training=True), x)
    np.testing.assert_array_equal(Dropout(1.0)(x, training=True), tf.zeros_like(x))


def test_a_noise_shape_is_delegated_to_keras():
    out = Dropout(0.5, noise_shape=(None, 1), seed=1)(tf.ones([50, 7]), training=True).numpy()
    assert (out == out[:, :1]).all() and 0 < (out == 0).mean() < 1


def test_dtypes_and_xla(dtype="float64"):
    layer = Dropout(0.25, seed=1, dtype=dtype)
    out = tf.function(lambda x: layer(x, training=True), jit_compile=True)(tf.ones([99, 7], dtype))
    assert out.dtype == dtype
    values = np.unique(tf.cast(out, "float64"))
    np.testing.assert_allclose(values, [0, 4 / 3], rtol=0.004)


def test_it_is_saved_like_the_layer_of_keras():
    layer = Dropout.from_config(Dropout(0.2, seed=3, name="dropout").get_config())
    assert (layer.rate, layer.seed, layer.name) == (0.2, 3, "dropout")


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_elements_that_share_random_bits_are_nearly_independent(rate):
    dropped = Dropout(rate, seed=1)(tf.ones([2, 2**21]), training=True).numpy() == 0
    first, second = dropped  # a number of the second row begins with the last byte of another's
    for shift in range(3):
        one, other = first[: len(first) - shift], second[shift:]
        assert abs(np.corrcoef(one, other)[0, 1]) < 1 / 256 + 4 / 2**10.5


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_small_tensors_get_a_number_for_each_element(size):
    layer = Dropout(0.5, seed=1)
    draws = np.stack([layer(tf.ones([size]), training=True).numpy() > 0 for _ in range(400)])
    assert (abs(draws.mean(axis=0) - 0.5) < 0.1).all()
    assert size == 1 or abs(np.corrcoef(draws, rowvar=False) - np.eye(size)).max() < 0.2


@pytest.mark.parametrize(
    ("device", "bits"), [("CPU", 8), ("GPU", 16), ("TPU", 16)], indirect=["device"]
)
def test_random_bits_of_an_element(device, bits):
    layer = Dropout(0.5, seed=1)
    x = tf.ones([64, 128])
    function = tf.compat.v1.wrap_function(
        lambda x: layer(x, training=True), [tf.TensorSpec(x.shape)]
    )
    operations = function.graph.get_operations()
    (draw,) = (node for node in operations if "RandomUniformFull" in node.type)
    words = function.prune(function.inputs[0], draw.outputs[0])(x)
    assert 32 * len(words) == pytest.approx(bits * 64 * 128, abs=32)
