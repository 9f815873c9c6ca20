"""Layer normalisation: its output and gradients against the formula in float64."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import normalization as layer_norm
from keras_transformer.normalization import (
    LayerNormalization,
    RMSNormalization,
    products_are_exact,
)

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
    """Returns the gradient of a scalar function by central differences."""
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


@pytest.mark.parametrize("training, exact", [(False, True), (True, True), (True, False)])
def test_output_and_gradients_follow_the_formula(monkeypatch, training, exact):
    """On a CPU, and with the code for machines that may round the factors of a product."""
    monkeypatch.setattr(layer_norm, "products_are_exact", lambda: exact)
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
def test_training_computes_the_same_as_inference(policy):
    x, gamma, beta, _ = example()
    layer = make_layer(gamma, beta, policy)
    x = tf.constant(x, layer.compute_dtype)
    trained = tf.function(lambda x: layer(x, training=True), jit_compile=True)(x)
    assert trained.dtype == layer.compute_dtype
    digits = {"bfloat16": 8, "float16": 11, "float64": 40}[layer.compute_dtype]
    ours, theirs = (keras.ops.cast(outputs, "float64") for outputs in (trained, layer(x)))
    np.testing.assert_allclose(ours, theirs, rtol=2.0 ** (1 - digits), atol=2.0 ** (2 - digits))


def test_large_values_with_little_spread_keep_their_precision():
    """The variance uses centred values and is not a difference of two large squares."""
    x = 1000 + np.random.default_rng(0).normal(size=(B, T, D))
    x = x.astype("float32").astype("float64")  # the rounded input of the layer: steps of 6e-5
    layer = make_layer(np.ones(D), np.zeros(D))
    out = layer(tf.constant(x, "float32"), training=True)
    # The measured error is 1.8e-4: float32 has steps of 6e-5 there, also in the mean that is
    # subtracted.
    np.testing.assert_allclose(out, norm(x, np.ones(D), np.zeros(D)), atol=5e-4)


@pytest.mark.parametrize(
    "kinds, exact",
    [(["CPU"], True), (["CPU", "GPU"], False), (["CPU", "TPU_SYSTEM", "TPU"], False)],
)
def test_products_are_trusted_on_cpus_only(monkeypatch, kinds, exact):
    devices = [tf.config.LogicalDevice(f"/device:{kind}:0", kind) for kind in kinds]
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda: devices)
    assert products_are_exact() == exact
    x, gamma, beta, _ = example("float32")
    layer = make_layer(gamma, beta)

    @tf.function
    def gradients(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(layer(x, training=True) ** 2)
        return tape.gradient(loss, [x, *layer.trainable_weights])

    graph = gradients.get_concrete_function(tf.TensorSpec([None, None, D])).graph
    assert any("MatMul" in operation.type for operation in graph.get_operations()) == exact


@pytest.mark.parametrize("options", [{"axis": 1}, {"center": False}, {"scale": False}])
def test_other_kinds_of_normalisation_are_delegated_to_keras(options):
    x = example("float32")[0]
    ours = LayerNormalization(epsilon=EPSILON, **options)
    theirs = keras.layers.LayerNormalization(epsilon=EPSILON, **options)
    np.testing.assert_array_equal(ours(x, training=True), theirs(x))


@pytest.mark.filterwarnings("ignore:You passed `rms_scaling=True`, which is deprecated")
@pytest.mark.parametrize(
    "options",
    [
        {"rms_scaling": True},
        {"rms_scaling": True, "center": False, "scale": False},
        {"center": False},
        {"scale": False},
        {"axis": 1},
        {"axis": [1, 2]},
    ],
    ids=str,
)
def test_other_arguments_behave_as_in_keras(options):
    """Output and gradients in training equal those of Keras's layer."""
    x, *_, upstream = example("float32")
    results = []
    for kind in (LayerNormalization, keras.layers.LayerNormalization):
        layer = kind(epsilon=EPSILON, **options)
        layer.build(x.shape)
        layer.set_weights(
            [np.arange(1, 1 + w.numpy().size).reshape(w.shape) for w in layer.weights]
        )
        source = tf.constant(x)
        arguments = {"training": True} if kind is LayerNormalization else {}
        with tf.GradientTape() as tape:
            tape.watch(source)
            out = layer(source, **arguments)
        sources = [source, *layer.trainable_variables]
        results.append([out, *tape.gradient(out, sources, tf.constant(upstream))])
        again = kind.from_config(layer.get_config())
        np.testing.assert_array_equal(again(x, **arguments).shape, x.shape)
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("epsilon", [0, -1e-6, float("nan"), float("inf"), "a", None, True])
def test_epsilon_must_be_positive(epsilon):
    with pytest.raises((TypeError, ValueError), match=r"`epsilon` must be .*Received: epsilon="):
        LayerNormalization(epsilon=epsilon)


@pytest.mark.parametrize("dtype", ["float64", "float32", "mixed_float16"])
def test_rms_normalization_equals_the_formula_and_keras(dtype):
    x, scale, _, _ = example()
    root = np.sqrt(np.square(x).sum(axis=2, keepdims=True) / D + EPSILON)
    ours = RMSNormalization(EPSILON, dtype=dtype)
    theirs = keras.layers.RMSNormalization(epsilon=EPSILON, dtype=dtype)
    for layer in (ours, theirs):
        layer.build(x.shape)
        layer.scale.assign(scale)
    y = ours(x)
    assert y.dtype == theirs(x).dtype == ours.compute_dtype
    error = {"float64": 1e-12, "float32": 1e-6, "float16": 5e-3}[ours.compute_dtype]
    np.testing.assert_allclose(y, x / root * scale, atol=error)
    np.testing.assert_allclose(y, theirs(x), atol=error)
    assert RMSNormalization.from_config(ours.get_config()).epsilon == EPSILON


def test_rms_normalization_needs_a_positive_epsilon():
    with pytest.raises(ValueError, match="`epsilon` must be above 0"):
        RMSNormalization(epsilon=0.0)
