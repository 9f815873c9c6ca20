"""Masks of attention: equal to `keras.layers.MultiHeadAttention` with the same mask and weights."""

import keras
import numpy as np
import pytest
from support import B, D, F, H, S, T, normal, random_mask, randomise

from keras_transformer import DecoderBlock, EncoderBlock, MultiHeadSelfAttention
from keras_transformer.layers import MultiHeadCrossAttention

SIZES = {"d_k": 4, "d_v": 5, "dtype": "float64"}  # Keras rounds 1 / sqrt(d_k) to float32
BLOCK = {"num_heads": H, "d_ff": F, "dropout": 0.0, "attention_bias": True, **SIZES}
SAME = {"rtol": 0, "atol": 1e-12}
SHAPES = [(B, T), (1, T), (B, 1), (1, 1)]  # of the first two axes


def of_keras(layer, x, memory=None):
    """Returns Keras's layer with the weights of ours, and the function that calls it."""
    memory = x if memory is None else memory
    theirs = keras.layers.MultiHeadAttention(
        H, key_dim=SIZES["d_k"], value_dim=SIZES["d_v"], dtype="float64"
    )
    theirs.build(x.shape, memory.shape, memory.shape)
    ours = [
        weight
        for dense in (layer.query, layer.key, layer.value, layer.output_projection)
        for weight in dense.get_weights()
    ]
    theirs.set_weights(
        [weight.reshape(own.shape) for weight, own in zip(ours, theirs.get_weights(), strict=True)]
    )
    return theirs


def mask(shape, length, seed):
    """Returns a random mask in which every query may attend to a key, as Keras requires."""
    shown = random_mask(*shape, length, seed=seed)
    shown[..., 0] = True
    return shown


def values():
    return normal(B, T, D).astype("float64"), normal(B, S, D, seed=1).astype("float64")


@pytest.mark.parametrize("shape", SHAPES)
def test_layers(shape):
    x, memory = values()
    for layer, inputs in (
        (MultiHeadSelfAttention(H, use_bias=True, **SIZES), (x,)),
        (MultiHeadCrossAttention(H, use_bias=True, **SIZES), (x, memory)),
    ):
        layer(*inputs)
        theirs = of_keras(randomise(layer), *inputs)
        shown = mask(shape, inputs[-1].shape[1], seed=2)
        options = {"attention_mask": shown, "return_attention_scores": True}
        for a, b in zip(layer(*inputs, **options), theirs(x, inputs[-1], **options), strict=True):
            np.testing.assert_allclose(a, b, **SAME)
        assert np.abs(layer(*inputs) - layer(*inputs, attention_mask=shown)).max() > 0.01


@pytest.mark.parametrize("causal", [False, True])
def test_an_encoder_block(causal):
    (x, _), block = values(), EncoderBlock(**BLOCK, causal=causal)
    block(x)
    attention, shown = of_keras(randomise(block).self_attention, x), mask((B, T), T, seed=2)
    y = attention(x, x, attention_mask=shown, use_causal_mask=causal)
    y = block.self_attention_norm(x + y)
    y = block.feed_forward_norm(y + block.feed_forward(y))
    np.testing.assert_allclose(block(x, attention_mask=shown), y, **SAME)
    assert np.abs(block(x) - y).max() > 0.01


def test_a_decoder_block():
    (x, memory), block = values(), DecoderBlock(**BLOCK)
    block(x, memory)
    attention = of_keras(randomise(block).self_attention, x)
    cross = of_keras(block.cross_attention, x, memory)
    own, shown = mask((B, T), T, seed=2), mask((B, T), S, seed=3)
    y = attention(x, x, attention_mask=own, use_causal_mask=True)
    y = block.self_attention_norm(x + y)
    y = block.cross_attention_norm(y + cross(y, memory, attention_mask=shown))
    y = block.feed_forward_norm(y + block.feed_forward(y))
    masks = {"attention_mask": own, "memory_attention_mask": shown}
    np.testing.assert_allclose(block(x, memory, **masks), y, **SAME)
    for name in masks:
        others = {key: value for key, value in masks.items() if key != name}
        assert np.abs(block(x, memory, **others) - y).max() > 0.01, name


def test_keras_fills_no_mask_of_attention():
    """Keras fills an argument `<name>_mask` from the mask of `<name>`; none may have that name."""
    for layer in (MultiHeadSelfAttention, MultiHeadCrossAttention, EncoderBlock, DecoderBlock):
        names = {*layer.call_arguments()}
        assert "attention_mask" in names and not names & {"attention", "memory_attention"}, layer
