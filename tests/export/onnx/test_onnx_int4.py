"""Weights in blocks of 32 and in float16, in products, look-ups and loops."""

import numpy as np
import pytest
import tensorflow as tf
from onnx_functions import call, converted
from pipelines import LINES, translator

import keras_transformer
from keras_transformer.export import OnnxOptions, export_onnx
from keras_transformer.export.onnx.blocks import codes_and_scales, in_8_bits, with_offsets
from keras_transformer.export.onnx.float16 import in_float16
from keras_transformer.export.onnx.int8 import in_int8
from keras_transformer.export.onnx.stored_in_blocks import (
    in_int4,
    in_int4_with_offsets,
    in_int8_blocks,
)

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

BLOCK, V, K = 32, 37, 96
RNG = np.random.default_rng(5)
TABLE = RNG.normal(size=(V, K)).astype("float32")
TABLE[3, :BLOCK], TABLE[4] = 0, 100 * TABLE[4]
PLACES = np.array([0, 3, 4, V - 1], "int32")
X = RNG.normal(size=(4, K)).astype("float32")


def decoded(codes, scales, offsets=None):
    """A matrix in 4 or 8 bits as numbers, one at a time."""
    numbers = np.zeros([*codes.shape[:2], BLOCK])
    for row, block, place in np.ndindex(numbers.shape):
        if codes.shape[2] == BLOCK:
            code = int(codes[row, block, place]) - 128
        else:
            byte = int(codes[row, block, place // 2])
            code = (byte >> 4 if place % 2 else byte & 15) - 8
        offset = 0 if offsets is None else float(offsets[row, block])
        numbers[row, block, place] = code * float(scales[row, block]) + offset
    return numbers.reshape(len(codes), -1)


def test_a_block_has_the_best_of_several_scales():
    """The error is at most half a step of the scale with which the largest number is -8."""
    for width in (K, K - 1):  # whole blocks, and an incomplete one
        numbers = decoded(*codes_and_scales(TABLE[:, :width]))
        assert not numbers[3, :BLOCK].any() and not numbers[:, width:].any()
        blocks = np.pad(TABLE[:, :width], ((0, 0), (0, K - width))).reshape(V, -1, BLOCK)
        errors = np.square(numbers.reshape(blocks.shape) - blocks).sum(-1)
        peaks = np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[..., None], -1)
        plain = np.clip(np.rint(-8 * blocks / np.where(peaks, peaks, 1)), -8, 7) * peaks / -8
        wanted = np.square(plain - blocks).sum(-1)
        assert (errors <= 1.0001 * wanted).all() and errors.sum() < 0.95 * wanted.sum()


def test_codes_are_those_of_onnx_runtime_with_the_same_scale(monkeypatch):
    """The quantiser's own function for whole blocks; our scales differ where others are better."""
    runtime = pytest.importorskip("onnxruntime.capi._pybind_state")
    codes, scales = np.zeros((V, K // BLOCK, 16), "uint8"), np.zeros((V, K // BLOCK), "float32")
    zeros = np.zeros((V, 2), "uint8")
    runtime.quantize_matmul_4bits(
        codes, np.ascontiguousarray(TABLE.T), scales, zeros, BLOCK, V, K, True
    )
    best, ours, _ = codes_and_scales(TABLE)
    errors = [
        np.square(decoded(*pair) - TABLE).reshape(V, -1, BLOCK).sum(-1)
        for pair in ((best, ours), (codes, scales))
    ]
    assert (errors[0] <= 1.0001 * errors[1]).all() and (ours == scales).any()
    np.testing.assert_array_equal(best[ours == scales], codes[ours == scales])
    monkeypatch.setattr("keras_transformer.export.onnx.blocks.TRIED", np.ones(1, "float32"))
    plain, peaks, _ = codes_and_scales(TABLE)
    np.testing.assert_array_equal(plain, codes)
    np.testing.assert_array_equal(peaks[scales != 0], scales[scales != 0])


def rounding(numbers):
    """The largest errors of numbers that are rounded to 8 bits in blocks."""
    result = np.zeros(numbers.shape)
    for begin in range(0, numbers.shape[1], BLOCK):
        block = np.abs(numbers[:, begin : begin + BLOCK])
        result[:, begin : begin + BLOCK] = block.max(1, keepdims=True) / 127 / 2
    return result


def in_a_loop(step):
    """A function that computes a step in the last of two iterations of a loop."""

    def function(x):
        beginning = 0, tf.zeros_like(step(x))
        return tf.while_loop(
            lambda index, _: index < 2, lambda index, _: (index + 1, step(x)), beginning
        )[1]

    return function


def tied(places):
    """A look-up and a product with one table, as of tied embeddings."""
    table = tf.constant(TABLE)
    return tf.matmul(tf.gather(table, places), table, transpose_b=True)


STEPS = {
    "look-up": (lambda places: tf.gather(tf.constant(TABLE), places), PLACES),
    "product": (lambda x: tf.matmul(x, tf.constant(TABLE.T)), X),
    "incomplete block": (lambda x: tf.matmul(x[:, : K - 1], tf.constant(TABLE[:, 1:].T)), X),
    "transposed": (lambda x: tf.matmul(x, tf.constant(TABLE), transpose_b=True), X),
    "tied": (tied, PLACES),
}


# Functions of a model, and the rounding of products and of tables that are looked up.
FORMS = {
    "int4": (in_int4, codes_and_scales, codes_and_scales),
    "int4 with offsets": (in_int4_with_offsets, with_offsets, in_8_bits),
    "int8": (in_int8_blocks, in_8_bits, in_8_bits),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("form", FORMS)
def test_products_and_look_ups_use_the_rounded_weights(name, form):
    """In and outside of a loop; the other factor of a product has 8 bits."""
    step, inputs = STEPS[name]
    convert, of_products, of_tables = FORMS[form]
    width = K - 1 if name == "incomplete block" else K
    table = TABLE[:, 1:] if width < K else TABLE
    looked_up = name in ("look-up", "tied")
    rounded = decoded(*(of_tables if looked_up else of_products)(table))[:, :width]
    factor = rounded[PLACES] if looked_up else X[:, :width]
    expected, bound = factor, 1e-5 * np.abs(factor)
    if name != "look-up":
        expected, bound = factor @ rounded.T, rounding(factor) @ np.abs(rounded).T
    for function in (step, in_a_loop(step)):
        model = convert(converted(function, [inputs]))
        onnx.checker.check_model(model)
        kinds = {weight.data_type for weight in model.graph.initializer if len(weight.dims) > 2}
        assert kinds == {onnx.TensorProto.UINT8}
        size = sum(len(weight.SerializeToString()) for weight in model.graph.initializer)
        whole = size < 4 * TABLE.size * (0.2 if form == "int4" else 0.3) + 1000
        assert whole or name == "incomplete block"  # a tied table is stored once
        found = call(function, [inputs], model)
        assert (np.abs(found - expected) <= 1.01 * bound + 1e-4).all()
        alone = call(function, [inputs[:1]], model)  # the other rows of a batch do not count
        np.testing.assert_allclose(alone, found[:1], rtol=1e-4, atol=1e-4)


def test_numbers_of_published_files_are_kept():
    """Numbers of llama.cpp's Q4_1 and Q8_0: scales and offsets in float16, all codes in use."""
    codes = RNG.permuted(np.tile([*range(16), *range(16)], (V, K // BLOCK, 1)), axis=-1)
    scale, least = (RNG.normal(size=(V, K // BLOCK, 1)).astype("float16") for _ in range(2))
    scale = np.abs(scale) + np.float16(0.01)
    numbers = (codes * scale.astype("float32") + least).reshape(V, K).astype("float32")
    rounded = with_offsets(numbers)
    assert {part.dtype.name for part in rounded[1:]} == {"float16"}
    np.testing.assert_array_equal(rounded.scales, scale[..., 0])
    # The offset is that of the middle of a block, rounded to float16.
    errors = np.abs(decoded(*rounded) - numbers).reshape(V, -1, BLOCK)
    middle = np.abs(least + 8 * scale.astype("float64"))
    assert (errors <= 2.0**-11 * middle + 1e-6).all()
    codes = RNG.integers(-127, 128, (V, K // BLOCK, BLOCK))
    codes[..., 0] = 127
    numbers = (codes * scale.astype("float32")).reshape(V, K)
    np.testing.assert_array_equal(decoded(*in_8_bits(numbers)), numbers)


def test_scales_that_float16_does_not_have_stay_in_float32():
    for factor in (1e-8, 1e8):
        for rounded in (with_offsets(factor * TABLE), in_8_bits(factor * TABLE)):
            assert rounded.scales.dtype == np.float32
            error = np.abs(decoded(*rounded) / factor - TABLE).max(1) / np.abs(TABLE).max(1)
            assert error.max() < 0.08


def test_offsets_lose_less_than_a_scale_alone():
    """Also for numbers on one side of zero; a constant block has that of an offset in float16."""
    for matrix, share in ((TABLE, 1), (np.abs(TABLE), 0.5)):
        losses = [
            np.square(decoded(*rounding(matrix)) - matrix).sum()
            for rounding in (with_offsets, codes_and_scales)
        ]
        assert losses[0] < share * losses[1]
    for value in (0.75, 0.02, -0.05, 0.0):
        constant = np.full((2, K), value, "float32")
        np.testing.assert_allclose(decoded(*with_offsets(constant)), constant, rtol=2.0**-11)


@pytest.mark.parametrize("convert", [in_int4, in_int8])
def test_tables_that_are_no_weights_keep_float32(convert):
    """Sines of positions, for example, which 4 bits would make wrong angles."""
    model = convert(converted(STEPS["look-up"][0], [PLACES]), lambda array: False)
    np.testing.assert_array_equal(call(None, [PLACES], model), TABLE[PLACES])


def test_weights_in_float16_are_cast_when_a_file_is_loaded():
    """Numbers beyond the range of float16 stay in float32, and so do small constants."""
    large = TABLE * np.float32(1e6)
    model = in_float16(converted(lambda x: tf.matmul(x, tf.constant(TABLE.T)), [X]))
    (weight,) = model.graph.initializer
    assert weight.data_type == onnx.TensorProto.FLOAT16
    onnx.checker.check_model(model, full_check=True)
    found = call(None, [X], model)
    half = TABLE.astype(np.float16).astype(np.float32)
    # The largest terms of these sums are about 1,000.
    np.testing.assert_allclose(found, X @ half.T, rtol=1e-5, atol=1e-3)
    model = in_float16(converted(in_a_loop(STEPS["tied"][0]), [PLACES]))
    expected = half[PLACES] @ half.T
    # Two orders of a sum of K products differ by at most K roundings of its absolute terms.
    bound = K * np.finfo(np.float32).eps * (np.abs(half[PLACES]) @ np.abs(half.T))
    assert (np.abs(call(None, [PLACES], model) - expected) <= bound).all()
    model = in_float16(converted(lambda x: tf.matmul(x, tf.constant(large.T)), [X]))
    assert {weight.data_type for weight in model.graph.initializer} == {onnx.TensorProto.FLOAT}


@pytest.mark.slow
@pytest.mark.parametrize("quantize", ["float16", "int4"])
def test_a_file_states_its_operators_and_keeps_its_limits(quantize, tmp_path):
    path = tmp_path / "x.onnx"
    report = export_onnx(translator(), path, LINES, OnnxOptions(quantize))
    others = {"int4": {"com.microsoft": 1}}.get(quantize)
    loaded = keras_transformer.open(path)
    assert loaded.metadata.get("other_operators") == others
    assert loaded.metadata["quantize"] == report["quantize"] == quantize
    assert 0 < report["score_error"] < 0.1
