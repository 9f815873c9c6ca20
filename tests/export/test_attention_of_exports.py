"""The attention of exports that run in one pass: equal to that of the layers, without selects."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from support import KV, B, D, F, H, K, S, T, normal, random_mask, randomise

from keras_transformer import Encoder, MultiHeadSelfAttention
from keras_transformer.export.attention import attend
from keras_transformer.export.litert.engines import load_interpreter
from keras_transformer.export.litert.tensorflow_converter import convert_functions
from keras_transformer.layers import MultiHeadCrossAttention
from keras_transformer.layers.kernels import Kernels

X, MEMORY = normal(B, T, D), normal(B, S, D, seed=1)


def pair(make, *shapes):
    """Returns a layer, and one with the same weights and the attention of exports."""
    layer, other = make(), make(kernels=Kernels(attend=attend))
    for built in (layer, other):
        built.build(*shapes)
    other.set_weights(randomise(layer).get_weights())
    return layer, other


def masks():
    """Returns a mask of keys and one of pairs; one query, and one sentence, see nothing."""
    keys, pairs = random_mask(B, T, seed=1), random_mask(B, T, T, seed=2)
    keys[0], pairs[1, 2] = False, False
    return {"keys": keys[:, None], "pairs": pairs, "none": None}


@pytest.mark.parametrize(
    ("score", "position"),
    [
        ("scaled_dot_product", None),
        ("scaled_dot_product", "rotary"),
        ("dot_product", "t5"),
        ("general", "alibi"),
    ],
)
def test_self_attention_is_equal(score, position):
    options = {"d_k": 6, "d_v": KV, "position": position, "score": score}
    for causal, window in ((True, None), (False, 3)):
        kind = {**options, "causal": causal, "window": window, "num_key_value_heads": 2}
        layer, other = pair(functools.partial(MultiHeadSelfAttention, 4, **kind), (B, T, D))
        for mask in masks().values():
            np.testing.assert_allclose(other(X, mask), layer(X, mask), rtol=0, atol=1e-5)


def test_cross_attention_is_equal():
    make = functools.partial(MultiHeadCrossAttention, H, d_k=K, d_v=KV)
    layer, other = pair(make, (B, T, D), (B, S, D))
    for mask in (None, random_mask(B, 1, S, seed=3), np.zeros((B, 1, S), bool)):
        expected = layer(X, MEMORY, mask)
        np.testing.assert_allclose(other(X, MEMORY, mask), expected, rtol=0, atol=1e-5)


def test_a_masked_key_has_no_influence_at_all():
    """Not even a large score, and not a small one: the numbers are the same, not only close."""
    layer, other = pair(functools.partial(Encoder, 2, H, F, d_k=K, d_v=KV), (B, T, D))
    mask = random_mask(B, T, seed=1)
    changed = np.where(mask[..., None], X, 1e4 * normal(B, T, D, seed=5))
    for built in (layer, other):
        one, two = (built(x, mask=mask).numpy() for x in (X, changed))
        np.testing.assert_array_equal(one[mask], two[mask])


@pytest.mark.parametrize("mask", ["keys", "pairs"])
def test_scores_are_not_selected(mask):
    """Only the mask is, which has no axis for the heads."""
    _, other = pair(functools.partial(MultiHeadSelfAttention, H, d_k=K, d_v=KV), (B, T, D))
    graph = tf.function(other).get_concrete_function(X, masks()[mask]).graph
    shapes = {
        tuple(operation.outputs[0].shape)
        for operation in graph.get_operations()
        if operation.type in ("Select", "SelectV2")
    }
    assert shapes == {(B, 1, 1, T) if mask == "keys" else (B, 1, T, T)}


@pytest.mark.slow
@pytest.mark.parametrize(("quantize", "error"), [("none", 1e-5), ("float16", 1e-2)])
def test_a_file_ignores_padding(quantize, error):
    """In float16 the term of a masked key is -65,504, which must still exclude it."""
    make = functools.partial(Encoder, 2, H, F, d_k=K, d_v=KV, kernels=Kernels(attend=attend))
    layer = make()
    layer.build((1, T, D))
    randomise(layer)
    mask = random_mask(1, T, seed=1)
    changed = np.where(mask[..., None], X[:1], 100 * normal(1, T, D, seed=5)).astype("float32")

    @tf.function(autograph=False)
    def run(x, mask):
        return {"y": layer(x, mask=mask)}

    specs = (
        tf.TensorSpec((1, T, D), name="x"),
        tf.TensorSpec((1, T), tf.bool, name="mask"),
    )
    content = convert_functions(layer, {"f": run.get_concrete_function(*specs)}, quantize)
    runner = load_interpreter()(model_content=content).get_signature_runner("f")
    one, two = (runner(x=x, mask=mask)["y"] for x in (X[:1], changed))
    np.testing.assert_array_equal(one[mask], two[mask])
    np.testing.assert_allclose(one[mask], layer(X[:1], mask=mask).numpy()[mask], rtol=0, atol=error)
