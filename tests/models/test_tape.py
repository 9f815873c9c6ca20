"""The decoder of the Extended Neural GPU against loops in NumPy, and fed with its own digits."""

import functools

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from calculators import LENGTHS, convolution, rows
from support import randomise, weights_of

from keras_transformer.layers import NeuralGPU, TapeDecoder, TapeGRU
from keras_transformer.models import Calculator

SIZES = {"encoder": "extended_neural_gpu", "num_layers": 2, "d_model": 6, "dropout": 0.0}


def of_tape(weights, size):
    """Returns the kernels W, W' and W'' over rows and columns, `[K, K, D, D]` each."""
    kernel = weights["tape_kernel"]
    maps = kernel.shape[1]
    whole = np.zeros((size, size, maps, 3 * maps))
    for column in range(kernel.shape[2] // (3 * maps)):  # of the image, counted from the tape
        part = kernel[:, :, column * 3 * maps : (column + 1) * 3 * maps]
        whole[:, size // 2 - column] = part
    return np.split(whole, 3, axis=-1)


def tape_gru(weights, image, tape, cutoff):
    """CGRU^d(s, p), one example without padding; the tape is an image `[T, W, D]`."""
    size, _, maps, _ = weights["gate_kernel"].shape
    kernels = of_tape(weights, size)

    def gate(number):
        part = slice(number * maps, (number + 1) * maps)
        inside = convolution(image, weights["gate_kernel"][..., part])
        inside += convolution(tape, kernels[number]) + weights["gate_bias"][part]
        return np.clip(cutoff / (1 + np.exp(-inside)) - (cutoff - 1) / 2, 0, 1)

    update, reset = gate(0), gate(1)
    inside = convolution(reset * image, weights["kernel"]) + convolution(tape, kernels[2])
    return update * image + (1 - update) * np.tanh(inside + weights["bias"])


def decoded(weights, image, layers, cutoff, known=()):
    """Logits of n outputs; after the known ones, the most probable ones are written to the tape."""
    tape, logits, written = np.zeros_like(image), [], []
    for place in range(len(image)):
        for number in range(layers):
            unit = reference.scope(weights, f"recurrent_{number}")
            image = tape_gru(unit, image, tape, cutoff)
        logits.append(reference.dense(reference.scope(weights, "output"), image[place, 0]))
        written.append(known[place] if place < len(known) else int(np.argmax(logits[-1])))
        tape = tape.copy()
        tape[place, 0] = weights["table"][written[-1]]
    return np.array(logits), written


@functools.cache
def model_of(**changes):
    return randomise(Calculator(**{**SIZES, **changes}), seed=4)


def digits_of(batch, logits):
    """Returns the most probable digits, and -1 for padding."""
    return np.where(batch == 0, -1, np.argmax(logits, axis=-1)).astype("int32")


@pytest.mark.parametrize(
    "width, size, cutoff", [(4, 3, 1.2), (3, 5, 1.0), (1, 5, 1.1), (2, 1, 1.2)]
)
def test_a_unit_equals_the_reference(width, size, cutoff):
    rng = np.random.default_rng(1)
    image, tape = (
        rng.normal(size=shape).astype("float32") for shape in ((2, 7, width, 5), (2, 7, 5))
    )
    unit = TapeGRU(size, cutoff)
    unit.build(image.shape, tape.shape)
    weights = weights_of(randomise(unit))
    for one, column, ours in zip(image, tape, np.asarray(unit(image, tape)), strict=True):
        whole = np.zeros(one.shape)
        whole[:, 0] = column
        expected = tape_gru(weights, one.astype("float64"), whole, cutoff)
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("known", [0, 3, 7])
def test_a_decoder_equals_the_reference(known):
    """Each row of a padded batch has as many outputs as symbols; some outputs are known."""
    rng = np.random.default_rng(2)
    decoder = TapeDecoder(3, gate_cutoff=1.1)
    image = rng.normal(size=(4, 7, 3, 5)).astype("float32")
    mask = np.arange(7) < np.array(LENGTHS)[:, None]
    image *= mask[:, :, None, None]
    given = np.where(np.arange(7) < known, rng.integers(0, 3, (4, 7)), -1)
    decoder.build(image.shape)
    weights = weights_of(randomise(decoder))
    logits = np.asarray(decoder(image, given, mask[:, None]))
    for number, length in enumerate(LENGTHS):
        own = image[number, :length].astype("float64")
        expected, _ = decoded(weights, own, 2, 1.1, given[number, : min(known, length)])
        np.testing.assert_allclose(logits[number, :length], expected, rtol=0, atol=1e-5)
        assert not np.any(logits[number, length:])


def test_its_own_digits_as_known_ones_change_nothing():
    """Teacher forcing on the digits of a prediction gives the logits of the prediction."""
    model, batch = model_of(), rows()
    own = np.asarray(model(batch))
    digits = digits_of(batch, own)
    np.testing.assert_array_equal(model({"symbols": batch, "digits": digits}), own)
    half = np.where(np.arange(7) < 4, digits, -1).astype("int32")
    np.testing.assert_array_equal(model({"symbols": batch, "digits": half}), own)


def test_a_digit_changes_later_logits_alone():
    model, batch = model_of(), rows()
    digits = digits_of(batch, model(batch))
    changed = digits.copy()
    changed[0, 3] = 1 - changed[0, 3]
    one, other = (
        np.asarray(model({"symbols": batch, "digits": values})) for values in (digits, changed)
    )
    np.testing.assert_array_equal(one[:, :4], other[:, :4])
    assert np.all(np.any(one[0, 4:] != other[0, 4:], axis=-1))


@pytest.mark.parametrize("forced", [False, True])
def test_padding_and_neighbours_change_nothing(forced):
    model, batch = model_of(layout="aligned", image_width=3), np.pad(rows(9), ((0, 0), (0, 3)))
    digits = np.where(batch == 0, -1, np.random.default_rng(5).integers(0, 2, batch.shape))

    def logits(row, length):
        inputs = {"symbols": batch[row, :length], "digits": digits[row, :length].astype("int32")}
        return np.asarray(model(inputs if forced else inputs["symbols"]))

    together = logits(slice(None), 10)
    for number, length in enumerate(LENGTHS):
        alone = logits(slice(number, number + 1), length)
        np.testing.assert_allclose(alone[0], together[number, :length], rtol=0, atol=1e-6)


def test_a_graph_and_gradients_equal_eager_ones():
    model, batch = model_of(num_layers=1), tf.constant(rows()[:, :3])
    digits = tf.where(batch == 0, -1, tf.argmax(model(batch), -1, tf.int32))

    def gradients(symbols, digits):
        with tf.GradientTape() as tape:
            logits = model({"symbols": symbols, "digits": digits}, training=True)
            loss = tf.reduce_sum(tf.square(logits))
        return tape.gradient(loss, model.trainable_variables)

    graph = tf.function(gradients, input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2)
    for in_graph, eager in zip(graph(batch, digits), gradients(batch, digits), strict=True):
        in_graph, eager = (np.asarray(tf.convert_to_tensor(one)) for one in (in_graph, eager))
        assert np.any(eager)
        np.testing.assert_allclose(in_graph, eager, rtol=1e-5, atol=1e-5 * np.abs(eager).max())


def test_images_end_in_the_output():
    encoder, decoder = NeuralGPU(2, image_width=3), TapeDecoder(2)
    image = encoder(
        np.random.default_rng(2).normal(size=(1, 5, 6)).astype("float32"), return_image=True
    )
    assert image.shape == (1, 5, 3, 6)
    logits, images = decoder(image), decoder.images(image)
    assert len(images) == 5 and images[0].shape == image.shape
    for place, one in enumerate(images):
        np.testing.assert_allclose(
            decoder.output_layer(one[:, place, 0]), logits[:, place], rtol=0, atol=1e-6
        )


def test_dropout_changes_training_alone():
    layer = TapeDecoder(2, dropout=0.5)
    image = np.random.default_rng(2).normal(size=(2, 5, 3, 6)).astype("float32")
    assert np.any(np.asarray(layer(image, training=True)) != np.asarray(layer(image)))
    np.testing.assert_array_equal(layer(image), layer(image, training=False))


def test_a_saved_model_is_equal(tmp_path):
    model = model_of(layout="aligned", image_width=3)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.config == model.config and loaded.config.encoder.writes_tape
    np.testing.assert_array_equal(loaded(rows(9)), model(rows(9)))


def test_wrong_calls():
    model, batch = model_of(), rows()
    for digits, message in (
        (np.full((4, 7), 2), "`digits` must be 0, 1, or -1 where .* Received by 'calculator': 2"),
        (
            np.zeros((4, 6), "int32"),
            r"`digits` must have a digit for each symbol. .* shape=\(4, 6\)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            model({"symbols": batch, "digits": digits})
    with pytest.raises(ValueError, match="symbols"):
        model(np.array([[7, 1]]))
    with pytest.raises(ValueError, match="`num_outputs` must be"):
        TapeDecoder(0)
    with pytest.raises(ValueError, match="`tape` must be"):
        TapeGRU()(np.zeros((1, 7, 4, 5), "float32"), np.zeros((1, 7, 4, 5), "float32"))
    with pytest.raises(ValueError, match="`position` has no effect on a `Calculator"):
        Calculator(**SIZES, position="rotary")
