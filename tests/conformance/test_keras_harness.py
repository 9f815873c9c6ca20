"""The test harnesses of Keras and KerasHub, and Keras's wrappers, on every public layer."""

import keras
import numpy as np
import pytest
from conformance.rows import (
    HARNESS_ROWS,
    MASKS,
    MODELS,
    RENAMED,
    call,
    inputs_of,
    is_layer,
)
from keras.src.testing import TestCase
from marks import slow
from support import randomise, to_numpy

import keras_transformer as kt

LAYERS = [name for name in kt.layers.__all__ if is_layer(getattr(kt.layers, name))]
PUBLIC = [*LAYERS, *(name for name in kt.models.__all__ if is_layer(getattr(kt.models, name)))]
VARIANTS = [name for name in HARNESS_ROWS if "_" in name and name not in MODELS]
# Blocks and stacks are made of the other layers and are slow; the slow tests cover what they add.
SLOW = {"Decoder", "DecoderBlock", "Encoder", "EncoderBlock"}
# Layers with several arguments, or an argument that `Sequential` and `TimeDistributed` cannot hold.
SECOND = ("memory", "tape")  # arguments without which a layer cannot be called
ONE_ARGUMENT = [name for name in LAYERS if not {*SECOND} & {*HARNESS_ROWS[name].arguments}]


def for_each_layer(names, cheap=()):
    """Parametrises a test by name; slow rows are marked as slow unless they are named as cheap."""
    costly = SLOW.union(VARIANTS).difference(cheap)
    return pytest.mark.parametrize(
        "name", [slow(name) if name in costly else name for name in names]
    )


def test_every_public_layer_is_a_row():
    assert set(PUBLIC) == {name.partition("_")[0] for name in HARNESS_ROWS}


@pytest.fixture(scope="module")
def harness():
    """Keras's harness, set up through `unittest`; restores Keras's settings afterwards."""
    return TestCase()


def arguments_of(name):
    """Returns the class and the constructor's arguments, as Keras's harness takes them."""
    layer = HARNESS_ROWS[name].make()
    config = {key: value for key, value in layer.get_config().items() if key != "name"}
    return type(layer), config


def run_layer_test(harness, name, **options):
    layer_class, config = arguments_of(name)
    (first, *others), values = HARNESS_ROWS[name].arguments, inputs_of(name)
    if others and others[0] in SECOND:
        shapes = {f"{key}_shape": values[key].shape for key in (first, others[0])}
        options.update(input_shape=shapes, input_dtype=dict.fromkeys(shapes, "float32"))
        others = others[1:]
        options["run_training_check"] = False  # the harness would call the layer with one argument
    else:
        options["input_data"] = keras.ops.convert_to_tensor(values[first])
    masks = {RENAMED.get((name, key), key): values[key] for key in others}
    expected = call(name, HARNESS_ROWS[name].make(), inputs_of(name))
    harness.run_layer_test(
        layer_class,
        config,
        call_kwargs=masks,
        expected_output_shape=tuple(expected.shape),
        expected_output_dtype=expected.dtype.name,
        **options,
    )


@pytest.mark.half_precision
@pytest.mark.parametrize("name", [x for x in LAYERS if x not in SLOW or x == "EncoderBlock"])
def test_the_layer_test_of_keras(harness, name):
    run_layer_test(harness, name, run_training_check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "Encoder",
        "FeedForward",
        "FrameMask",
        "MultiHeadSelfAttention",
        "PatchEmbedding",
        "Mixing",
        "SnowAccount",
    ],
)
def test_the_layer_test_of_keras_with_training(harness, name):
    """Runs all of the above, and a step of `fit` that XLA compiles."""
    run_layer_test(harness, name)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", [x for x in (*LAYERS, *VARIANTS) if x not in MASKS])
def test_the_layer_test_of_kerashub(name):
    """With masks as inputs, a step of `fit` and all dtype policies: pip install keras-hub grain.

    Masks are excluded because they are boolean: outputs must have the dtype of the layer.
    """
    pytest.importorskip("keras_hub", reason="keras-hub, whose harness this is, is not installed")
    from keras_hub.src.tests.test_case import TestCase as KerasHubTestCase

    layer_class, config = arguments_of(name)
    layer = layer_class(**config)
    data = {
        RENAMED.get((name, key), key): keras.ops.convert_to_tensor(value)
        for key, value in inputs_of(name).items()
    }
    expected = call(name, layer, inputs_of(name))
    KerasHubTestCase().run_layer_test(
        layer_class,
        config,
        data if len(data) > 1 else next(iter(data.values())),
        tuple(expected.shape),
        expected_num_trainable_weights=len(layer.trainable_weights),
        expected_num_non_trainable_weights=len(layer.non_trainable_weights),
        expected_num_non_trainable_variables=len(layer.non_trainable_variables),
    )


# `Transformer` is the fast representative of all models: they share their serialisation.
@pytest.mark.parametrize(
    "name",
    [
        slow("MaskedLanguageModel"),
        slow("SeriesRegressor_gru_attention"),
        slow("SpeechTransformer"),
        slow("TextEmbedder"),
        slow("TokenClassifier_transform"),
        "Transformer",
        slow("Transformer_ssru"),
    ],
)
def test_the_serialization_test_of_keras(harness, name):
    harness.run_class_serialization_test(HARNESS_ROWS[name].make())


@for_each_layer([*LAYERS, *VARIANTS])
def test_the_computed_output_shape_matches_the_output(name):
    """The layer is not built yet; unknown sizes stay unknown."""
    layer, inputs = HARNESS_ROWS[name].make(), inputs_of(name)
    (first, value), *_ = inputs.items()
    shape = layer.compute_output_shape(value.shape)
    assert tuple(shape) == tuple(call(name, layer, inputs).shape)
    if first not in ("images", "pixels"):
        assert tuple(layer.compute_output_shape((None, None, *value.shape[2:])))[:1] == (None,)


@for_each_layer(ONE_ARGUMENT, cheap=("EncoderBlock",))
@pytest.mark.parametrize("length", [slow(3), None])
def test_time_distributed(name, length):
    """Each slice is computed on its own, with a loop of known or unknown length."""
    (first, *_), layer = HARNESS_ROWS[name].arguments, HARNESS_ROWS[name].make()
    value = np.stack([np.roll(inputs_of(name)[first], n, axis=1) for n in range(3)], axis=1)
    inputs = keras.Input((length, *value.shape[2:]), dtype=value.dtype.name)
    model = randomise(keras.Model(inputs, keras.layers.TimeDistributed(layer)(inputs)))
    expected = np.stack([to_numpy(layer(value[:, n])) for n in range(3)], axis=1)
    assert model.output.shape == (None, length, *expected.shape[2:])
    np.testing.assert_allclose(model(value), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("rank", [2, 3])
def test_time_distributed_with_a_mask(rank):
    """The mask tells which positions of a slice are real, or which slices are real."""
    layer = kt.MultiHeadSelfAttention(2)
    x = np.random.default_rng(0).normal(size=(4, 3, 4, 6)).astype("float32")
    mask = np.random.default_rng(1).random(x.shape[:rank]) < 0.6
    mask[:, 0] = True
    out = keras.layers.TimeDistributed(layer)(x, mask=mask)
    for n in range(3):
        keys = np.broadcast_to(mask[:, n].reshape(4, -1), (4, 4))
        expected = layer(x[:, n], mask=keys)
        np.testing.assert_allclose(out[:, n], expected, rtol=0, atol=1e-5)
