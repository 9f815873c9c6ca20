"""Activations by name, and activations registered by a user, from a layer to a saved model."""

import functools
import gc
import weakref

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from support import B, D, F, S, normal, randomise, small_config, weights_of

from keras_transformer import EncoderBlock, FeedForward, Transformer, TransformerConfig, activations


@keras.saving.register_keras_serializable("test_activations")
def squared_relu(x):
    return keras.ops.square(keras.ops.relu(x))


def unregistered(x):
    return x


NAME = "test_activations>squared_relu"


@pytest.mark.parametrize("name", ["relu", "gelu", "gelu_tanh", "silu", "linear", "tanh", NAME])
def test_the_name_of_a_function_is_found(name):
    assert activations.name_of(activations.get(name)) == name
    assert activations.name_of(name) == name


def test_other_names_of_one_function():
    assert activations.get("swish") is activations.get("silu")
    assert activations.name_of("swish") == "swish"
    assert activations.name_of(None) == "linear"


def test_the_tanh_form_of_gelu():
    x = np.linspace(-6, 6, 97)
    expected = reference.activate(x, "gelu_tanh")
    tanh, exact = (np.asarray(activations.get(name)(x)) for name in ("gelu_tanh", "gelu"))
    np.testing.assert_allclose(tanh, expected, rtol=0, atol=1e-6)
    assert 1e-4 < np.abs(tanh - exact).max() < 5e-4


def test_silu_is_that_of_keras():
    x = normal(97)
    assert activations.name_of(keras.activations.silu) == "silu"
    np.testing.assert_array_equal(activations.get("silu")(x), keras.activations.silu(x))


def test_no_activation_keeps_the_graph_that_it_was_used_in():
    """Each traced search would otherwise take memory until the process ends."""

    def is_kept(activation):
        layer = FeedForward(F, activation="relu")
        layer.build((B, S, D))
        layer.inner.activation = activation
        function = tf.function(layer, autograph=False)
        graph = function.get_concrete_function(tf.TensorSpec([B, S, D])).graph
        kept = weakref.ref(graph)
        del graph, function, layer
        gc.collect()
        return kept() is not None

    assert is_kept(keras.activations.silu), "TensorFlow keeps it"
    for name in activations.COMMON:
        assert not is_kept(activations.get(name)), name


@pytest.mark.parametrize(
    ("wrong", "received"),
    [
        ("nope", "activation='nope'"),
        ("test_activations>nope", "activation='test_activations>nope'"),
        (unregistered, "activation=unregistered"),
        (functools.partial(squared_relu), r"activation=functools\.partial"),
        (3, "activation=3"),
    ],
)
@pytest.mark.parametrize("make", [FeedForward, functools.partial(EncoderBlock, 2)])
def test_wrong_activations_are_reported_in_one_line(make, wrong, received):
    with pytest.raises(
        (TypeError, ValueError), match=f"^`activation` must be .*{received}"
    ) as error:
        make(F, activation=wrong)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("activation", [squared_relu, NAME, "gelu_tanh", activations.gelu_tanh])
def test_in_a_layer(activation):
    layer = FeedForward(F, activation=activation)
    layer.build((B, S, D))
    weights, x = weights_of(randomise(layer)), normal(B, S, D)
    inner = reference.dense(reference.scope(weights, "inner"), x)
    name = layer.get_config()["activation"]
    after = np.maximum(inner, 0) ** 2 if name == NAME else reference.activate(inner, "gelu_tanh")
    expected = reference.dense(reference.scope(weights, "outer"), after)
    np.testing.assert_allclose(layer(x), expected, rtol=0, atol=1e-5)
    again = FeedForward.from_config(layer.get_config())
    again.build((B, S, D))
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(again(x), layer(x))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_in_a_saved_model(tmp_path, name="gelu_tanh"):
    config = small_config(activation=name)
    assert TransformerConfig.from_dict(config.to_dict()) == config
    model = randomise(Transformer(config))
    inputs = {"source": np.array([[4, 5, 3]]), "target": np.array([[2, 6]])}
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(inputs), model(inputs))
    assert loaded.encoder.blocks[0].config.block.activation == name
