"""The SSRU: its scan, 16 bits, wrong masks, and its blocks; `test_mixers.py` tests the rest."""

import numpy as np
import pytest
import reference
import tensorflow as tf
from keras import ops
from support import KV, B, D, F, H, K, S, T, normal, random_mask, randomise, to_numpy, weights_of

from keras_transformer import Decoder, DecoderBlock
from keras_transformer.layers import SSRU, Mixer, Mixing
from keras_transformer.scan import linear_recurrence

SAME = {"rtol": 0, "atol": 1e-5}
BLOCK = {"num_heads": H, "d_ff": F, "d_k": K, "d_v": KV, "dropout": 0.0}


def built(width=D, **options):
    layer = Mixing(SSRU(), **options)
    layer.build((None, None, width))
    return randomise(layer)


def gates(length):
    rng = np.random.default_rng(length)
    return rng.uniform(0, 1, (B, length, D)), rng.normal(size=(B, length, D))


def one_after_the_other(keep, add):
    state, states = tf.zeros_like(add[:, 0]), []
    for t in range(add.shape[1]):
        state = keep[:, t] * state + add[:, t]
        states.append(state)
    return tf.stack(states, axis=1)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 61])
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-13), ("float32", 1e-5)])
def test_scan_and_its_gradients_equal_a_loop(length, dtype, atol):
    keep, add = (tf.constant(values, dtype) for values in gates(length))
    upstream = tf.constant(normal(B, length, D, seed=1), dtype)
    results = []
    for function in (linear_recurrence, one_after_the_other):
        with tf.GradientTape() as tape:
            tape.watch((keep, add))
            states = function(keep, add)
        results.append([states, *tape.gradient(states, (keep, add), upstream)])
    for value, expected in zip(*results, strict=True):
        assert value.dtype == dtype
        np.testing.assert_allclose(value, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_scan_of_a_length_unknown_to_the_graph(jit):
    graph = tf.function(
        linear_recurrence, input_signature=[tf.TensorSpec([None, None, D])] * 2, jit_compile=jit
    )
    for length in (1, 6, 17):
        keep, add = (values.astype("float32") for values in gates(length))
        np.testing.assert_allclose(graph(keep, add), one_after_the_other(keep, add), **SAME)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_small_changes_of_a_state_are_not_lost_in_16_bits(dtype):
    """Changes below 0.25 % would be lost in bfloat16, and the state would stay at a half."""
    layer = built(1, dtype=dtype)
    layer.candidate.kernel.assign([[1.0]])
    layer.forget.kernel.assign([[0.0]])
    layer.forget.bias.assign([6.0])
    length = 1500
    states = to_numpy(layer(np.ones((1, length, 1), "float32")))[0, :, 0]
    keep = reference.sigmoid(6.0)
    expected = 1 - keep ** np.arange(1, length + 1)
    np.testing.assert_allclose(states, expected, rtol=0, atol=2e-2)
    assert states[-1] > 0.95


@pytest.mark.parametrize("shape", [(B, T, T), (1, T, T), (B, 3, T)])
def test_a_mask_that_depends_on_the_query_is_reported_in_one_line(shape):
    x, memory = normal(B, T, D), normal(B, S, D)
    message = "`attention_mask` must be the same for every query, so its second axis must be 1. "
    mask = np.ones(shape, bool)
    with pytest.raises(ValueError, match=message) as error:
        built()(x, mask)
    assert "\n" not in str(error.value)
    for layer in (
        DecoderBlock(**BLOCK, mixer="ssru"),
        Decoder(1, **BLOCK, mixer="ssru"),
    ):
        with pytest.raises(ValueError, match=message) as error:
            layer(x, memory, attention_mask=mask)
        assert "\n" not in str(error.value)


def test_a_mask_for_a_step_is_refused():
    layer = built()
    with pytest.raises(ValueError, match=r"must be None .* a mask \(2, 1, 11\)"):
        layer.step(normal(B, 1, D), layer.empty_cache(B, T), 0, np.ones((B, 1, T), bool))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_block_with_an_ssru(norm):
    block = DecoderBlock(**BLOCK, norm=norm, mixer="ssru")
    block.build((None, None, D), (None, None, D))
    weights = weights_of(randomise(block))
    assert not [name for name in weights if name.startswith("self_attention")]
    x, memory, seen = normal(B, T, D), normal(B, S, D, seed=1), random_mask(B, S, seed=2)
    expected = reference.decoder_block(
        weights, x, memory, None, reference.everyone(T, seen), H, norm=norm
    )
    out, attended = block(x, memory, memory_mask=seen, return_attention_scores=True)
    np.testing.assert_allclose(out, expected, **SAME)
    assert list(attended) == ["cross_attention"]


def test_a_configuration_makes_the_same_layers():
    for layer in (
        DecoderBlock(**BLOCK, mixer="ssru"),
        Decoder(2, **BLOCK, mixer="ssru"),
    ):
        again = type(layer).from_config(layer.get_config())
        assert again.get_config() == layer.get_config()
        assert again.get_config()["mixer"] == {"kind": "ssru"}
    assert DecoderBlock(**BLOCK).get_config()["mixer"] == "self_attention"


@pytest.mark.parametrize("make", [DecoderBlock, lambda **options: Decoder(2, **options)])
def test_wrong_arguments(make):
    with pytest.raises(ValueError, match=r"`mixer` must be one of .*'mlp'"):
        make(**BLOCK, mixer="mlp")
    with pytest.raises(ValueError, match=r"`position` must be added to .*position=Rotary\(\)"):
        make(**BLOCK, mixer="ssru", position="rotary")


class Mean(Mixer):
    kind = "tests_mean"

    def call(self, layer, x, real=None):
        return x + ops.mean(x, axis=1, keepdims=True)


def test_a_layer_that_reads_both_directions_has_no_cache():
    layer = Mixing(Mean())
    layer.build((None, None, D))
    with pytest.raises(ValueError, match=r"`causal` must be true .*later ones.*causal=False"):
        layer.empty_cache(B, T)
    assert layer.get_config()["causal"] is False and built().get_config()["causal"] is True
