"""ALiBi: the formula, dependence on distances only, 16 bits; and positions with weights."""

import numpy as np
import pytest
import reference
import tensorflow as tf
from keras import ops
from support import (
    KV,
    B,
    D,
    H,
    K,
    T,
    normal,
    random_mask,
    randomise,
    to_numpy,
    weights_of,
)

from keras_transformer import MultiHeadSelfAttention, PositionalEmbedding
from keras_transformer.positions import Position, distances
from keras_transformer.positions.alibi import alibi_slopes

# Exponents of 1/2, from `get_slopes` in the authors' ofirpress/attention_with_linear_biases.
SLOPES = {
    1: [8],
    2: [4, 8],
    3: [4, 8, 2],
    5: [2, 4, 6, 8, 1],
    8: [1, 2, 3, 4, 5, 6, 7, 8],
    12: [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5],
}


@pytest.mark.parametrize("heads", SLOPES)
def test_slopes(heads):
    expected = [0.5**exponent for exponent in SLOPES[heads]]
    np.testing.assert_allclose(alibi_slopes(heads), expected, rtol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_follows_the_formula(causal):
    layer = MultiHeadSelfAttention(H, d_k=K, d_v=KV, causal=causal, position="alibi")
    x, mask = normal(B, T, D), random_mask(B, T, T, seed=1)
    layer.build(x.shape)
    weights = weights_of(randomise(layer))
    assert len(weights) == 4
    seen = mask & np.tri(T, dtype=bool) if causal else mask
    bias = reference.alibi([1 / 16, 1 / 256, 1 / 4], T)
    expected, expected_weights = reference.multi_head(weights, x, x, seen, H, bias=bias)
    out, attended = layer(x, attention_mask=mask, return_attention_scores=True)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(attended, expected_weights, rtol=0, atol=1e-5)
    plain, _ = reference.multi_head(weights, x, x, seen, H)
    assert np.abs(plain - expected).max() > 0.1


@pytest.mark.parametrize(("policy_name", "digits"), [("mixed_bfloat16", 8), ("mixed_float16", 11)])
def test_distances_are_not_rounded_to_16_bits(policy_name, digits):
    """Queries are zero: the weights are a geometric sequence that is rounded once, at the end."""
    layer = MultiHeadSelfAttention(1, causal=True, position="alibi", dtype=policy_name)
    length = 2053
    _, weights = layer(np.zeros((1, length, 2), "float32"), return_attention_scores=True)
    exact = reference.softmax(-np.arange(length)[::-1] / 256)
    bias = to_numpy(weights)[0, 0, -1]
    # The lower bound covers subnormals.
    half_a_unit = np.maximum(2.0 ** (np.frexp(exact)[1] - digits - 1), 2.0**-25)
    assert np.all(np.abs(bias - exact) <= half_a_unit * 1.01)


def test_a_distance_beyond_the_range_of_float16():
    layer = MultiHeadSelfAttention(1, position="alibi", dtype="mixed_float16")
    bias = layer.position.bias(layer, None, 20_000_000, np.array([0, 2_000_000, 20_000_000]))
    np.testing.assert_allclose(bias, [[[-78_125, -70_312.5, 0]]])


def test_an_embedding_refuses_it():
    with pytest.raises(ValueError, match='"alibi" acts in self-attention'):
        PositionalEmbedding(19, D, position="alibi")


class Distances(Position):
    """A learned bias per distance, clipped at 3, with different values for before and after."""

    kind = "tests_distances"

    def build_attention(self, attention):
        shape = (7, attention.num_heads)
        attention.distances = attention.add_weight(shape=shape, name="distances")

    def bias(self, attention, heads, queries, keys):
        far = ops.clip(distances(queries, keys), -3, 3)  # [T, S]
        return ops.moveaxis(ops.take(attention.distances, far + 3, axis=0), -1, 0)


@pytest.mark.parametrize("policy", ["mixed_float16"], indirect=["policy"])
def test_a_custom_position_may_have_weights(policy):
    """A new kind changes no file: formula, gradients, saving, and a step at a time."""
    layer = MultiHeadSelfAttention(H, d_k=K, d_v=KV, causal=True, position=Distances())
    x = normal(B, T, D)
    layer.build(x.shape)
    weights = weights_of(randomise(layer))
    table, bias = weights.pop("distances"), np.zeros((H, T, T))
    for h, i, j in np.ndindex(bias.shape):
        bias[h, i, j] = table[max(-3, min(3, i - j)) + 3, h]
    seen = np.tri(T, dtype=bool)[None].repeat(B, axis=0)
    expected, _ = reference.multi_head(weights, x, x, seen, H, bias=bias)
    atol = {"float32": 1e-5, "float16": 0.01, "bfloat16": 0.08}[policy.compute_dtype]
    with tf.GradientTape() as tape:
        out = layer(x)
    np.testing.assert_allclose(to_numpy(out), expected, rtol=0, atol=atol)
    assert np.all(to_numpy(tape.gradient(out, layer.distances))[3:].any(axis=1))
    cache = tuple(ops.zeros((B, H, T, size), layer.compute_dtype) for size in (K, KV))
    for t in range(T):
        step, cache = layer.step(ops.cast(x[:, t : t + 1], layer.compute_dtype), cache, t)
        np.testing.assert_allclose(to_numpy(step)[:, 0], expected[:, t], rtol=0, atol=atol)
    again = MultiHeadSelfAttention.from_config(layer.get_config())
    again.build(x.shape)
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(to_numpy(again(x)), to_numpy(out))
