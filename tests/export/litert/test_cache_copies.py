"""A step of a beam in LiteRT: no operation copies the cache only to give it another shape."""

import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from support import normal, randomise

from keras_transformer import MultiHeadSelfAttention
from keras_transformer.export.litert import kernels
from keras_transformer.export.litert.serialization import read_model
from keras_transformer.export.litert.tensorflow_converter import convert_functions
from keras_transformer.layers.kernels import Kernels

B, H, N, K, D, POSITIONS = 2, 3, 4, 8, 24, 16
CACHE = B * H * POSITIONS * N * K  # elements of all keys, more than those of any other tensor


def step(layer, extends):
    """Returns one step as a concrete function; with `extends`, in the second part of a cache."""
    inputs = [tf.TensorSpec([B, N, D]), tf.TensorSpec([], tf.int32)]

    @tf.function(input_signature=inputs, autograph=False)
    def run(x, index):
        cache = layer.empty_cache(B, POSITIONS, N)
        if extends:
            cache = layer.extended_cache(cache, POSITIONS, N)
        length = POSITIONS * (1 + extends)
        allowed = tf.repeat(tf.range(length), N) <= index
        allowed = tf.tile(tf.reshape(allowed, [1, 1, -1]), [B, N, 1])
        output, cache = layer.step(x, cache, index, allowed)
        return {"output": output, "key": cache[0], "value": cache[1]}

    return run.get_concrete_function()


@pytest.mark.parametrize("extends", [slow(False), True])
def test_no_reshape_copies_the_cache(extends):
    chosen = Kernels(write=kernels.write, similarity=kernels.single_similarity)
    layer = MultiHeadSelfAttention(H, d_k=K, causal=True, kernels=chosen)
    layer.build((None, None, D))
    model = read_model(convert_functions(layer, {"step": step(layer, extends)}))
    (graph,) = model.subgraphs
    sizes = {
        np.prod(graph.tensors[operator.outputs[0]].shape)
        for operator in graph.operators
        if model.operatorCodes[operator.opcodeIndex].builtinCode == kernels.OPERATORS.RESHAPE
    }
    assert sizes and max(sizes) < CACHE


@pytest.mark.parametrize("extends", [slow(False), True])
def test_it_equals_the_step_in_tensorflow(extends):
    """LiteRT updates a slice of the cache, TensorFlow selects from the old and the new entries."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    layers = [
        MultiHeadSelfAttention(H, d_k=K, causal=True, kernels=chosen)
        for chosen in (Kernels(write=kernels.write), Kernels())
    ]
    for layer in layers:
        layer.build((None, None, D))
        randomise(layer)
    x, index = normal(B, N, D).astype("float32"), np.array(POSITIONS * extends + 5, "int32")
    expected = step(layers[1], extends)(x=x, index=index)
    content = convert_functions(layers[0], {"step": step(layers[0], extends)})
    run = interpreter.Interpreter(model_content=content).get_signature_runner("step")
    outputs = run(x=x, index=index)
    for name, value in expected.items():
        assert np.any(value)
        np.testing.assert_allclose(outputs[name], value, atol=1e-5)
