"""The logits of a few tokens in an int8 file: products with gathered rows."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import normal
from tflite_products import products

from keras_transformer.export.litert.engines import load_interpreter
from keras_transformer.export.litert.kernels import WIDE, Int8Rows, multiply_in_int8
from keras_transformer.layers.kernels import restrict

V, C, D = 29, 11, 16
TOKENS = np.array([3, 5, 0, 28, 7, 5, 11, 13, 17, 19, 23], "int32")


def table():
    return keras.Variable(normal(V, D) * np.linspace(0.1, 3, V)[:, None], dtype="float32")


def expected(x, matrix):
    """Quantises each row to 127 steps on each side of 0 with its own scale, in a loop."""
    columns = []
    for row in np.asarray(matrix, "float64")[TOKENS]:
        step = np.abs(row).max() / 127
        columns.append(np.asarray(x, "float64") @ (np.round(row / step) * step))
    return np.stack(columns, axis=-1)


def converted(weights, axis, x):
    """Converts a small search loop: rows are gathered before it and multiplied inside."""
    rows = Int8Rows([weights]) if axis == 0 else Int8Rows([], weights)

    def run(x, tokens):
        product = rows.restrict(weights, tokens, axis, "float32")

        def step(number, total):
            return number + 1, total + product(x)

        zeros = tf.zeros([*x.shape[:2], C])
        return tf.while_loop(lambda number, _: number < 2, step, (0, zeros))[1] / 2

    shapes = [tf.TensorSpec(x.shape, tf.float32), tf.TensorSpec([C], tf.int32)]
    function = tf.function(run, shapes, autograph=False).get_concrete_function()
    return tf.lite.TFLiteConverter.from_concrete_functions([function], function).convert()


def answer(content, x):
    interpreter = load_interpreter()(model_content=bytes(content))
    interpreter.allocate_tensors()
    for details in interpreter.get_input_details():
        value = TOKENS if details["dtype"] == np.int32 else x
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.parametrize("axis", [0, 1])
def test_a_few_rows_are_multiplied_in_integers(axis):
    """Hidden states are also rounded: to 127 steps of their largest value."""
    weights, x = table(), normal(2, 3, D).astype("float32")
    matrix = weights.numpy()
    if axis == 1:
        weights = keras.Variable(matrix.T)
    content = converted(weights, axis, x)
    patched = multiply_in_int8(content)
    assert products(content) == [("FLOAT32", "FLOAT32", False)]
    assert products(patched) == [("FLOAT32", "INT8", False)]
    rounding = np.abs(x).max(axis=-1) / 254
    limit = rounding[..., None] * np.abs(matrix[TOKENS]).sum(axis=1) + 1e-5
    found, exact = answer(patched, x), expected(x, matrix)
    assert (np.abs(found - exact) <= limit).all() and np.abs(found - exact).max() > 1e-5
    np.testing.assert_allclose(answer(content, x), exact, atol=1e-4)


def test_many_hidden_states_are_multiplied_in_float32():
    weights, x = table(), normal(WIDE // 4, 4, D).astype("float32")
    content = converted(weights, 0, x)
    assert products(content) == [], "XNNPACK takes a matrix like this one as it is"
    np.testing.assert_allclose(answer(content, x), expected(x, weights.numpy()), atol=1e-4)
    np.testing.assert_array_equal(answer(multiply_in_int8(content), x), answer(content, x))


def test_a_bias_is_not_rounded():
    bias = keras.Variable(normal(5000))

    rows = Int8Rows([], bias=bias)

    def run(tokens):
        return rows.pick(bias, tokens)

    function = tf.function(run, [tf.TensorSpec([C], tf.int32)]).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], function)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    np.testing.assert_array_equal(answer(converter.convert(), None), bias.numpy()[TOKENS])


@pytest.mark.parametrize("axis", [0, 1])
def test_without_rounding_it_equals_the_product_with_the_rows(axis):
    weights, x = normal(V, D).astype("float32"), normal(2, 3, D).astype("float32")
    variable = keras.Variable(weights if axis == 0 else weights.T)
    found = restrict(variable, TOKENS, axis, "float32")(x)
    np.testing.assert_allclose(found, x @ weights[TOKENS].T, atol=1e-5)
