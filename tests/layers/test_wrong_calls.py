"""Errors of a first program in one line: values called like layers, arguments that a call lacks."""

import dataclasses

import numpy as np
import pytest

from keras_transformer import DecoderBlock, EncoderBlock, FeedForward
from keras_transformer import layers as space
from keras_transformer.layers.composite import CompositeLayer

X = np.zeros((2, 5, 6), "float32")


@pytest.mark.parametrize(
    ("value", "option", "example"),
    [
        (space.LayerNorm(epsilon=1e-3), "normalization", EncoderBlock),
        (space.SelfAttention(num_heads=2), "mixer", EncoderBlock),
        (space.CrossAttention(num_heads=2), "cross_attention", DecoderBlock),
        (space.Additive(), "score", EncoderBlock),
        (space.Gated(), "feed_forward", EncoderBlock),
        (space.Rotary(), "position", EncoderBlock),
        (space.LinearScaling(factor=2.0), "scaling", space.Rotary),
    ],
)
def test_a_value_is_not_a_layer(value, option, example):
    with pytest.raises(TypeError) as error:
        value(X)
    assert str(error.value) == (
        f"{value!r} is a value, not a layer, and cannot be called: pass it as the option "
        f"`{option}`, for example to `{example.__name__}`."
    )
    heads = {"num_heads": None if option == "mixer" else 2, "d_ff": 3}
    example(**({} if example is space.Rotary else heads), **{option: value})  # which takes it


def test_a_call_names_the_arguments_that_it_has():
    message = r"^`FeedForward` is called with x, training\. Received by 'ff': attention_mask\.$"
    with pytest.raises(TypeError, match=message):
        FeedForward(3, name="ff")(X, attention_mask=None, training=True)
    message = r"^`EncoderBlock` is called with x, attention_mask, .* by 'block': memory\.$"
    with pytest.raises(TypeError, match=message):
        EncoderBlock(2, 3, name="block")(X, memory=X)


def test_a_call_with_arguments_of_its_own_takes_them():
    class Scaled(CompositeLayer):
        def call(self, x, **options):
            return x * options.get("scale", 1.0)

    np.testing.assert_array_equal(Scaled()(X + 1, scale=2.0), 2 * (X + 1))


def test_a_position_without_a_hash():
    @dataclasses.dataclass
    class Own(space.Position):
        kind = "without_a_hash"

        width: int = 1

    message = (
        r"^`position` must have a hash: decorate the class .*Own with `@keras_transformer\.variants"
        r"\.declared` or `@dataclasses\.dataclass\(frozen=True\)`\. Received: .*Own\(width=1\)\.$"
    )
    for make in (
        lambda: EncoderBlock(2, 3, position=Own()),
        lambda: DecoderBlock(2, 3, position=Own()),
    ):
        with pytest.raises(TypeError, match=message):
            make()


def test_an_error_shows_only_the_options_that_were_given():
    value = space.SelfAttention(num_heads=2, window=3, score="additive")
    assert repr(value) == "SelfAttention(num_heads=2, score=Additive(), window=LocalWindow(size=3))"
    with pytest.raises(ValueError, match=r"cross_attention=SelfAttention\(num_heads=2\)\.$"):
        DecoderBlock(2, 3, cross_attention=space.SelfAttention(num_heads=2))
