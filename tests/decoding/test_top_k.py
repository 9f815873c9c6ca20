"""The top k values equal those of TensorFlow's own sort, in the same order."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding.constraints import NEVER
from keras_transformer.decoding.top_k import top_k

SIZES = [7, 100, 640, 1000, 1009]  # fewer than two blocks; divisors; a prime, padded


def check(outputs, values, k):
    expected = tf.math.top_k(values, k)
    np.testing.assert_array_equal(outputs[0], expected[0])
    np.testing.assert_array_equal(outputs[1], expected[1])


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_values_and_places_equal_those_of_a_sort(size, jit_compile):
    values = np.random.default_rng(0).normal(size=(2, 3, size)).astype("float32")
    find = tf.function(lambda values: top_k(values, 7), jit_compile=jit_compile)
    check(find(values), values, 7)


@pytest.mark.parametrize("size", SIZES)
def test_the_first_of_equal_values_comes_first(size):
    """Few distinct values, so that values repeat within blocks and across blocks."""
    for seed in range(20):
        values = np.random.default_rng(seed).integers(0, 4, (3, size)).astype("float32")
        check(top_k(tf.constant(values), 6), values, 6)


@pytest.mark.parametrize("size", SIZES)
def test_forbidden_values_are_taken_before_the_padding_of_a_block(size):
    values = np.full((2, size), NEVER, "float32")
    values[:, size // 2] = 1.0
    check(top_k(tf.constant(values), 5), values, 5)


def test_litert_returns_the_same():
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    values = np.random.default_rng(0).normal(size=(2, 3, 1000)).astype("float32")
    module = tf.Module()
    module.find = tf.function(
        lambda values: top_k(values, 7), input_signature=[tf.TensorSpec((2, 3, 1000))]
    )
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [module.find.get_concrete_function()], module
    )
    runner = interpreter.Interpreter(model_content=converter.convert())
    runner.allocate_tensors()
    runner.set_tensor(runner.get_input_details()[0]["index"], values)
    runner.invoke()
    outputs = [runner.get_tensor(detail["index"]) for detail in runner.get_output_details()]
    # Sorted by dtype, so that values come before places.
    check(sorted(outputs, key=lambda output: output.dtype.kind), values, 7)
