"""Results of blocks equal those of TensorFlow's own sort and of sums in float64."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding.blocks import Blocks, top_k
from keras_transformer.decoding.predictor import NEVER
from keras_transformer.export.litert import kernels as litert_kernels
from keras_transformer.export.litert.serialization import read_model
from keras_transformer.layers import kernels

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


@pytest.mark.parametrize(
    ("size", "jit_compile", "log_sum_exp"),
    [
        pytest.param(7, True, kernels.log_sum_exp, id="7-True-log_sum_exp0"),
        pytest.param(100, False, kernels.log_sum_exp, id="100-False-log_sum_exp0"),
        pytest.param(100, True, litert_kernels.log_sum_exp, id="100-True-log_sum_exp1"),
        pytest.param(640, False, litert_kernels.log_sum_exp, id="640-False-log_sum_exp1"),
        pytest.param(1000, False, kernels.log_sum_exp, id="1000-False-log_sum_exp0"),
        pytest.param(1000, True, kernels.log_sum_exp, id="1000-True-log_sum_exp0"),
        pytest.param(1009, False, litert_kernels.log_sum_exp, id="1009-False-log_sum_exp1"),
        pytest.param(1009, True, litert_kernels.log_sum_exp, id="1009-True-log_sum_exp1"),
    ],
)
def test_sums_equal_those_in_float64(size, jit_compile, log_sum_exp):
    values = 30 * np.random.default_rng(1).normal(size=(2, 3, size)).astype("float32")
    values[0, 0] = 0.0  # all values are equal
    values[0, 1, 1:] = NEVER  # one value is left
    values[1, 0] += 1000  # whose exponentials would overflow
    total = tf.function(lambda values: log_sum_exp(Blocks(values)), jit_compile=jit_compile)
    expected = np.logaddexp.reduce(values.astype("float64"), axis=-1, keepdims=True)
    np.testing.assert_allclose(total(values), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_a_column_holds_the_values_at_its_index(size):
    values = np.random.default_rng(2).normal(size=(2, 3, size)).astype("float32")
    blocks = Blocks(tf.constant(values))
    for index in (0, size // 2, size - 1):
        np.testing.assert_array_equal(blocks.column(index), values[..., index : index + 1])


def test_litert_gives_the_values_one_shape_only():
    """It would copy them for each shape, which took as long as their exponentials."""
    matrix = tf.Variable(tf.random.normal([1000, 8]))

    @tf.function(input_signature=[tf.TensorSpec((2, 4, 8))], autograph=False)
    def results(x):
        product = tf.matmul(tf.reshape(x, [8, 8]), matrix, transpose_b=True)
        blocks = Blocks(tf.reshape(product, [2, 4, 1000]))
        return blocks.top_k(7), litert_kernels.log_sum_exp(blocks), blocks.column(3)

    converter = tf.lite.TFLiteConverter.from_concrete_functions([results.get_concrete_function()])
    model = read_model(converter.convert())
    (graph,) = model.subgraphs
    reshaped = [
        operator
        for operator in graph.operators
        if model.operatorCodes[operator.opcodeIndex].builtinCode == litert_kernels.OPERATORS.RESHAPE
        and np.prod(graph.tensors[operator.outputs[0]].shape) == 8 * 1000
    ]
    assert len(reshaped) == 1


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
