"""Layer normalisation, its output and its gradient, against the formula in float64."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.layer_norm import LayerNormalization

B, T, D, EPSILON = 3, 5, 7, 1e-3


def example(dtype="float64"):
    random = np.random.default_rng(0)
    return (
        random.normal(2, 3, (B, T, D)).astype(dtype),
        random.normal(size=D).astype(dtype),
        random.normal(size=D).astype(dtype),
        random.normal(size=(B, T, D)).astype(dtype),
    )


def norm(x, gamma, beta):
    out = np.empty_like(x)
    for b, t in np.ndindex(B, T):
        centred = x[b, t] - x[b, t].sum() / D
        out[b, t] = centred / np.sqrt((centred**2).sum() / D + EPSILON) * gamma + beta
    return out


def differences(function, argument, step=1e-6):
    """Gradient of a function to a number, by central differences."""
    out = np.empty_like(argument)
    for place in np.ndindex(argument.shape):
        ends = []
        for sign in (1, -1):
            moved = argument.copy()
            moved[place] += sign * step
            ends.append(function(moved))
        out[place] = (ends[0] - ends[1]) / (2 * step)
    return out


def make_layer(gamma, beta, dtype="float32"):
    layer = LayerNormalization(epsilon=EPSILON, dtype=dtype)
    layer.build((None, None, D))
    layer.set_weights([gamma, beta])
    return layer


@pytest.mark.parametrize("training", [False, True])
def test_output_and_gradients_are_those_of_the_formula(training):
    x, gamma, beta, upstream = example()
    layer = make_layer(gamma, beta)
    source = tf.constant(x, "float32")
    with tf.GradientTape() as tape:
        tape.watch(source)
        out = layer(source, training=training)
        loss = tf.reduce_sum(out * tf.constant(upstream, "float32"))
    np.testing.assert_allclose(out, norm(x, gamma, beta), atol=1e-5)
    gradients = tape.gradient(loss, [source, *layer.trainable_weights])
    expected = (
        differences(lambda moved: (norm(moved, gamma, beta) * upstream).sum(), x),
        differences(lambda moved: (norm(x, moved, beta) * upstream).sum(), gamma),
        differences(lambda moved: (norm(x, gamma, moved) * upstream).sum(), beta),
    )
    for ours, theirs in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "float64"])
def test_training_says_what_inference_says(policy):
    x, gamma, beta, _ = example()
    layer = make_layer(gamma, beta, policy)
    x = tf.constant(x, layer.compute_dtype)
    trained = tf.function(lambda x: layer(x, training=True), jit_compile=True)(x)
    assert trained.dtype == layer.compute_dtype
    digits = {"bfloat16": 8, "float16": 11, "float64": 40}[layer.compute_dtype]
    ours, theirs = (keras.ops.cast(each, "float64") for each in (trained, layer(x)))
    np.testing.assert_allclose(ours, theirs, rtol=2.0 ** (1 - digits), atol=2.0 ** (2 - digits))


def test_large_values_with_little_spread_keep_their_digits():
    """The variance is that of the centred values: no difference of two large squares."""
    x = 1000 + np.random.default_rng(0).normal(size=(B, T, D))
    x = x.astype("float32").astype("float64")  # what the layer sees: steps of 6e-5
    layer = make_layer(np.ones(D), np.zeros(D))
    out = layer(tf.constant(x, "float32"), training=True)
    # The error seen is 1.8e-4: float32 has steps of 6e-5 there, and so has the mean that is taken.
    np.testing.assert_allclose(out, norm(x, np.ones(D), np.zeros(D)), atol=5e-4)
