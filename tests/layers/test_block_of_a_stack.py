"""A block of a stack and the same block rebuilt alone from its configuration, which is its own."""

import keras
import numpy as np
import pytest
from mixer_rows import MIXERS, mixer_of
from support import B, D, F, S, T, normal, randomise, to_numpy

from keras_transformer import Decoder, DecoderBlock, Encoder, EncoderBlock

ALTERNATING = {"kind": "alternating", "size": 2, "global_every": 2}
STACKS = {
    "alternating": {"num_heads": 2, "window": ALTERNATING},
    "alternating, other positions": {
        **{"num_heads": 2, "d_k": 8},
        "position": {"kind": "rotary", "base": 500.0},
        "window": {**ALTERNATING, "position": {"kind": "rotary", "base": 10.0}},
    },
    "alternating, additional positions": {
        "num_heads": 2,
        "attention_position": "alibi",
        "window": {**ALTERNATING, "position": {"kind": "relative", "distance": 3}},
    },
    "dilated": {"mixer": {"kind": "dilated_convolution", "max_dilation": 4}},
    "first without a norm": {"num_heads": 2, "norm": {"kind": "pre", "first": False}},
    "hidden start": {"num_heads": 2, "position": "alibi", "attends_to_start": False},
    **{kind: {"mixer": mixer_of(kind)} for kind in MIXERS},
}


def rebuilt(block, *shapes):
    alone = type(block).from_config(block.get_config())
    alone.build(*shapes)
    alone.set_weights(block.get_weights())
    return alone


@pytest.mark.parametrize("kind", STACKS)
def test_a_block_alone_equals_that_of_a_stack(kind):
    stack = Encoder(3, d_ff=F, causal=True, **STACKS[kind])
    x = normal(B, T, D)
    stack.build(x.shape)
    randomise(stack)
    for block in stack.blocks:
        alone = rebuilt(block, x.shape)
        assert alone.get_config() == block.get_config()
        np.testing.assert_array_equal(to_numpy(alone(x)), to_numpy(block(x)))


@pytest.mark.parametrize("kind", ["alternating", "dilated", "hidden start"])
def test_a_decoder_block_alone_equals_that_of_a_stack(kind):
    stack = Decoder(2, d_ff=F, **{"num_heads": 2, **STACKS[kind]})
    x, memory = normal(B, T, D), normal(B, S, D, seed=1)
    stack.build(x.shape, memory.shape)
    randomise(stack)
    for block in stack.blocks:
        alone = rebuilt(block, x.shape, memory.shape)
        assert isinstance(alone, DecoderBlock)
        np.testing.assert_array_equal(to_numpy(alone(x, memory)), to_numpy(block(x, memory)))


def test_blocks_of_a_saved_model(tmp_path):
    """Keras rebuilds each block of a functional model from its own configuration."""
    stack = Encoder(2, d_ff=F, **STACKS["dilated"])
    stack.build((None, None, D))
    randomise(stack)
    inputs = keras.Input((None, D))
    model = keras.Model(inputs, stack.blocks[1](inputs))
    model.save(tmp_path / "x.keras")
    x = normal(B, T, D)
    loaded = keras.saving.load_model(tmp_path / "x.keras")
    np.testing.assert_array_equal(to_numpy(loaded(x)), to_numpy(model(x)))


def test_only_a_causal_block_hides_the_start():
    with pytest.raises(ValueError, match="`attends_to_start` must be left out .*causal=False"):
        EncoderBlock(num_heads=2, d_ff=F, attends_to_start=False)
    with pytest.raises(ValueError, match="`attends_to_start` must be left out .*causal=False"):
        Encoder(2, num_heads=2, d_ff=F, attends_to_start=False)


def test_a_block_alone_has_the_mixer_that_it_is_given():
    block = EncoderBlock(num_heads=2, d_ff=F, window=3)
    assert block.config.window.size == 3 and block.config.of_block(1) == block.config
    with pytest.raises(ValueError, match="`window` of a single layer must be a number"):
        EncoderBlock(num_heads=2, d_ff=F, window=ALTERNATING)
