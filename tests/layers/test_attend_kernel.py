"""Attention as one fused operation, and attention weights only on request."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from searching import by_beam
from support import KV, B, D, F, H, K, S, T, normal, random_mask, randomise, small_config

from keras_transformer import (
    Decoder,
    DecoderBlock,
    EncoderBlock,
    MultiHeadSelfAttention,
    Transformer,
)
from keras_transformer.layers import MultiHeadCrossAttention, multi_head
from keras_transformer.layers.kernels import Kernels

LAYER = {"rtol": 0, "atol": 1e-5}
BLOCK = {"d_k": K, "d_v": KV}
X, MEMORY = normal(B, T, D), normal(B, S, D, seed=1)


class Fused:
    """Another algorithm for the same attention: one key at a time, with an online softmax."""

    def __init__(self):
        self.calls = 0

    def __call__(self, query, key, value, allowed, bias, scale):
        self.calls += 1
        shared = query.shape[1] // key.shape[1]
        key, value = (tf.repeat(heads, shared, axis=1) for heads in (key, value))
        shape = [*query.shape[:3], key.shape[2]]  # [B, H, T, S]
        bias = tf.zeros(shape) if bias is None else tf.broadcast_to(bias, shape)
        allowed = tf.fill(shape, True) if allowed is None else tf.broadcast_to(allowed, shape)
        highest, total, heads = tf.fill([*shape[:3], 1], -1e9), 0.0, 0.0
        for s in range(key.shape[2]):
            here = slice(s, s + 1)
            score = scale * tf.reduce_sum(query * key[:, :, here], -1, keepdims=True)
            score = tf.where(allowed[..., here], score + bias[..., here], -1e9)
            largest = tf.maximum(highest, score)
            weight = tf.where(allowed[..., here], tf.exp(score - largest), 0.0)
            kept, highest = tf.exp(highest - largest), largest
            total, heads = kept * total + weight, kept * heads + weight * value[:, :, here]
        return tf.math.divide_no_nan(heads, total)


def pair(make, *shapes):
    """Returns a layer, one with the same weights and the fused kernel, and the kernel."""
    fused = Fused()
    layer, other = make(), make(kernels=Kernels(attend=fused))
    for built in (layer, other):
        built.build(*shapes)
    other.set_weights(randomise(layer).get_weights())
    return layer, other, fused


@pytest.mark.parametrize(
    ("position", "score"),
    [
        slow(None, "scaled_dot_product"),
        ("rotary", "general"),
        slow("alibi", "dot_product"),
        ("t5", "general"),
    ],
)
def test_a_fused_self_attention(position, score):
    options = {"d_k": 6, "d_v": KV, "position": position, "score": score, "causal": True}
    make = functools.partial(MultiHeadSelfAttention, 4, num_key_value_heads=2, **options)
    layer, other, fused = pair(make, (B, T, D))
    mask = random_mask(B, 1, T, seed=1)
    mask[0] = False  # a sentence in which nothing may be attended to
    np.testing.assert_allclose(other(X, mask), layer(X, mask), **LAYER)
    assert fused.calls == 1
    whole, cache = layer(X), other.empty_cache(B, T)
    for index in range(T):
        out, cache = other.step(X[:, index : index + 1], cache, index)
        np.testing.assert_allclose(out[:, 0], whole[:, index], **LAYER)
    assert fused.calls == 1 + T


def test_a_fused_decoder():
    make = functools.partial(Decoder, 2, H, F, **BLOCK, dropout=0.0)
    layer, other, fused = pair(make, (B, T, D), (B, S, D))
    memory_allowed = random_mask(B, 1, S, seed=2)
    expected = layer(X, MEMORY, memory_attention_mask=memory_allowed)
    np.testing.assert_allclose(
        other(X, MEMORY, memory_attention_mask=memory_allowed), expected, **LAYER
    )
    assert fused.calls == 4
    out, weights = other(
        X, MEMORY, memory_attention_mask=memory_allowed, return_attention_scores=True
    )
    np.testing.assert_allclose(out, expected, **LAYER)
    assert len(weights) == 4 and fused.calls == 4  # the composed form returns the weights


@pytest.mark.parametrize("options", [{"score": "additive"}, {"position": "relative"}], ids=str)
def test_scores_that_are_not_products_do_not_use_the_kernel(options):
    make = functools.partial(MultiHeadSelfAttention, H, **BLOCK, **options)
    layer, other, fused = pair(make, (B, T, D))
    np.testing.assert_array_equal(other(X), layer(X))
    assert fused.calls == 0


def test_dropout_of_the_weights_does_not_use_the_kernel():
    make = functools.partial(MultiHeadSelfAttention, H, **BLOCK, dropout=0.5)
    _, layer, fused = pair(make, (B, T, D))
    layer(X, training=True)
    assert fused.calls == 0
    layer(X, training=False)
    assert fused.calls == 1


LAYERS = {
    "self": (lambda: MultiHeadSelfAttention(H, **BLOCK), [X]),
    "cross": (lambda: MultiHeadCrossAttention(H, **BLOCK), [X, MEMORY]),
    "encoder_block": (lambda: EncoderBlock(H, F, **BLOCK), [X]),
    "decoder_block": (lambda: DecoderBlock(H, F, **BLOCK), [X, MEMORY]),
    "decoder": (lambda: Decoder(2, H, F, **BLOCK), [X, MEMORY]),
}


@pytest.fixture
def weights_asked(monkeypatch):
    """A list with one entry for each attention that returned its weights."""
    asked = []

    def counting(*arguments, attend=multi_head.attend_with_weights, **options):
        asked.append(1)
        return attend(*arguments, **options)

    monkeypatch.setattr(multi_head, "attend_with_weights", counting)
    return asked


@pytest.mark.parametrize("name", LAYERS)
def test_weights_are_computed_on_request_only(weights_asked, name):
    make, inputs = LAYERS[name]
    layer = make()
    out = layer(*inputs)
    assert not weights_asked
    same, weights = layer(*inputs, return_attention_scores=True)
    assert len(weights_asked) == (len(weights) if isinstance(weights, dict) else 1)
    np.testing.assert_array_equal(same, out)


def test_searches_request_weights_only_for_an_alignment(weights_asked, decode=by_beam):
    model = randomise(Transformer(small_config()))
    source = np.array([[4, 5, 6, 3]])
    tokens = decode(model, source, max_length=5)[0]
    assert not weights_asked
    result = decode(model, source, max_length=5, alignment=(0, None))
    assert weights_asked
    np.testing.assert_array_equal(result["tokens"], tokens)
