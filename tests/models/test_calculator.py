"""The Neural GPU against loops in NumPy, and the effects of batches and padding."""

import functools

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from calculators import LENGTHS, convolution, rows
from support import randomise, weights_of

from keras_transformer.layers import ConvolutionalGRU, NeuralGPU
from keras_transformer.models import Calculator, CalculatorConfig

SIZES = {"num_layers": 2, "d_model": 6, "dropout": 0.0}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cgru(weights, image, cutoff):
    """CGRU(s) of section 2, one example without padding, in float64."""
    maps = image.shape[-1]

    def gate(part):
        inside = convolution(image, weights["gate_kernel"][..., part]) + weights["gate_bias"][part]
        return np.minimum(1, np.maximum(0, cutoff * sigmoid(inside) - (cutoff - 1) / 2))

    update, reset = gate(slice(0, maps)), gate(slice(maps, None))
    new = np.tanh(convolution(reset * image, weights["kernel"]) + weights["bias"])
    return update * image + (1 - update) * new


def neural_gpu(weights, symbols, layers, width, cutoff):
    """n steps of all units on the mental image of n embedded symbols `[n, D]`."""
    image = np.zeros((len(symbols), width, symbols.shape[-1]))
    image[:, 0] = symbols
    for _ in symbols:
        for number in range(layers):
            image = cgru(reference.scope(weights, f"recurrent_{number}"), image, cutoff)
    return image[:, 0]


@functools.cache
def model_of(**changes):
    return randomise(Calculator(CalculatorConfig(encoder="neural_gpu", **{**SIZES, **changes})))


@pytest.mark.parametrize("kernel_size, cutoff", [(3, 1.2), (5, 1.0)])
def test_a_unit_equals_the_reference(kernel_size, cutoff):
    unit = ConvolutionalGRU(kernel_size, cutoff)
    x = np.random.default_rng(1).normal(size=(2, 7, 3, 5)).astype("float32")
    unit.build(x.shape)
    weights = weights_of(randomise(unit))
    expected = [cgru(weights, image.astype("float64"), cutoff) for image in x]
    np.testing.assert_allclose(unit(x), expected, rtol=0, atol=1e-5)


def test_a_unit_keeps_padding_at_zero():
    unit = ConvolutionalGRU()
    x = np.random.default_rng(1).normal(size=(1, 7, 3, 5)).astype("float32")
    x[:, 4:] = 0
    unit.build(x.shape)
    randomise(unit)
    mask = np.arange(7)[None, None] < 4
    padded, alone = unit(x, mask), unit(x[:, :4])
    np.testing.assert_allclose(padded[:, :4], alone, rtol=0, atol=1e-6)
    assert not np.any(padded[:, 4:])


@pytest.mark.parametrize("changes", [{}, {"layout": "aligned", "image_width": 3}])
def test_logits_equal_the_reference(changes):
    """Each row of a padded batch has as many steps as it has symbols."""
    model = model_of(**changes)
    config, weights = model.config, weights_of(model)
    batch = rows(config.input.num_symbols)
    logits = np.asarray(model(batch))
    assert logits.dtype == "float32" and logits.shape == (4, 7, 2)
    table = weights["embedding/table"] * config.d_model**0.5
    for row, length, ours in zip(batch, LENGTHS, logits, strict=True):
        hidden = neural_gpu(
            reference.scope(weights, "encoder"),
            table[row[:length]],
            config.num_layers,
            config.encoder.image_width,
            config.encoder.gate_cutoff,
        )
        expected = reference.dense(reference.scope(weights, "output"), hidden)
        np.testing.assert_allclose(ours[:length], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("encoder", ["neural_gpu", "transformer"])
def test_padding_and_neighbours_change_nothing(encoder):
    options = {"num_heads": 2, "d_ff": 8} if encoder == "transformer" else {}
    model = randomise(Calculator(encoder=encoder, **SIZES, **options))
    together = np.asarray(model(np.pad(rows(), ((0, 0), (0, 3)))))
    for number, length in enumerate(LENGTHS):
        alone = np.asarray(model(rows()[number : number + 1, :length]))
        np.testing.assert_allclose(alone[0], together[number, :length], rtol=0, atol=1e-6)


def test_a_graph_and_gradients_equal_eager_ones():
    """The number of steps is known only when the graph runs."""
    model, batch = model_of(), rows()

    def gradients(symbols):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model(symbols, training=True)))
        return tape.gradient(loss, model.trainable_variables)

    graph = tf.function(gradients, input_signature=[tf.TensorSpec([None, None], tf.int32)])
    pairs = zip(graph(tf.constant(batch)), gradients(tf.constant(batch)), strict=True)
    for in_graph, eager in pairs:
        in_graph, eager = (np.asarray(tf.convert_to_tensor(one)) for one in (in_graph, eager))
        np.testing.assert_allclose(in_graph, eager, rtol=1e-5, atol=1e-5 * np.abs(eager).max())


def test_images_end_in_the_output():
    layer = NeuralGPU(2, image_width=3)
    x = np.random.default_rng(2).normal(size=(2, 5, 6)).astype("float32")
    mask = np.array([[[True] * 5], [[True] * 2 + [False] * 3]])
    output, images = layer(x, mask), layer.images(x, mask)
    assert len(images) == 6 and images[0].shape == (2, 5, 3, 6)
    np.testing.assert_array_equal(images[-1][:, :, 0], output)
    np.testing.assert_array_equal(images[2][1], images[5][1])  # two symbols: two steps


def test_dropout_changes_training_alone():
    layer = NeuralGPU(1, dropout=0.5)
    x = np.random.default_rng(2).normal(size=(2, 5, 6)).astype("float32")
    assert np.any(np.asarray(layer(x, training=True)) != np.asarray(layer(x)))
    np.testing.assert_array_equal(layer(x), layer(x, training=False))


def test_a_saved_model_is_equal(tmp_path):
    model = model_of(layout="aligned", image_width=3)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.config == model.config
    np.testing.assert_array_equal(loaded(rows(9)), model(rows(9)))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"kernel_size": 4}, "`kernel_size` must be an odd number. Received: kernel_size=4"),
        ({"gate_cutoff": 0.9}, "`gate_cutoff` must be at least 1. Received: gate_cutoff=0.9"),
        ({"image_width": 0}, "`image_width` must be"),
        ({"position": "rotary"}, "`position` has no effect on a `CalculatorConfig`"),
        ({"layout": "diagonal"}, "`layout` must be"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        CalculatorConfig(encoder="neural_gpu", **{**SIZES, **options})


def test_options_of_the_other_encoder():
    with pytest.raises(ValueError, match="`image_width` has no effect on a `CalculatorConfig`"):
        CalculatorConfig(num_layers=1, image_width=3)
    with pytest.raises(ValueError, match="`encoder` must be one of transformer, neural_gpu"):
        CalculatorConfig(encoder="neural_cpu")


def test_wrong_calls():
    with pytest.raises(ValueError, match="`x` must be"):
        ConvolutionalGRU()(np.zeros((2, 7, 5), "float32"))
    with pytest.raises(ValueError, match="symbols"):
        model_of()(np.array([[7, 1]]))
