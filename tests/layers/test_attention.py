"""Eq. 1 and multi-head attention against the reference; masks, empty rows, dropout, errors."""

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from support import KV, B, D, H, K, S, T, normal, random_mask, randomise, to_numpy, weights_of

from keras_transformer import MultiHeadSelfAttention
from keras_transformer.layers import MultiHeadCrossAttention
from keras_transformer.layers.dot_product import attend, dot_product_attention

LAYER = {"rtol": 0, "atol": 1e-5}


def heads_first(x):
    """Converts [B, T, H, K] of the reference to [B, H, T, K] of the package, and back."""
    return np.swapaxes(x, 1, 2)


def query_key_value():
    return normal(B, T, H, K, seed=1), normal(B, S, H, K, seed=2), normal(B, S, H, KV, seed=3)


@pytest.mark.parametrize("mask_shape", [None, (B, T, S), (1, T, S), (B, 1, S), (1, 1, S)])
def test_dot_product_attention_is_equation_1(mask_shape):
    query, key, value = query_key_value()
    mask = np.ones((B, T, S), bool) if mask_shape is None else random_mask(*mask_shape, seed=4)
    expected, expected_weights = reference.attention(
        *(x.astype("float64") for x in (query, key, value)), np.broadcast_to(mask, (B, T, S))
    )
    allowed = None if mask_shape is None else np.expand_dims(mask, 1)
    out, weights = dot_product_attention(
        *(heads_first(x) for x in (query, key, value)), attention_mask=allowed
    )
    np.testing.assert_allclose(heads_first(out), expected, **LAYER)
    np.testing.assert_allclose(weights, expected_weights, **LAYER)


def test_dot_product_attention_by_hand():
    """Two keys, scores ln(3) * sqrt(4) / sqrt(4) and 0: weights 3/4 and 1/4."""
    query = np.array([[[[1.0, 0, 0, 0]]]], "float32")
    key = np.array([[[[2 * np.log(3.0), 0, 0, 0], [0, 5, 5, 5]]]], "float32")
    value = np.array([[[[8.0], [-4.0]]]], "float32")
    out, weights = dot_product_attention(query, key, value)
    np.testing.assert_allclose(weights, [[[[0.75, 0.25]]]], atol=1e-6)
    np.testing.assert_allclose(out, [[[[5.0]]]], atol=1e-5)


def test_weights_sum_to_one_over_allowed_keys_and_are_zero_elsewhere():
    query, key, value = (heads_first(x) for x in query_key_value())
    mask = random_mask(B, 1, T, S, seed=5)
    _, weights = dot_product_attention(query, key, value, attention_mask=mask)
    mask = np.broadcast_to(mask, weights.shape)
    weights = to_numpy(weights)
    assert np.all(weights[~mask] == 0)
    assert np.all(weights[mask] > 0)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)


def test_scores_are_scaled_before_they_overflow_float16():
    """q k = 64 * 45^2 = 129,600 exceeds float16's 65,504; divided by sqrt(64) it does not."""
    query = np.full((1, 1, 1, 64), 45, "float16")
    key = np.stack([np.full(64, 45), np.full(64, -45)])[None, None].astype("float16")
    value = np.array([[[[1.0], [2.0]]]], "float16")
    out, weights = dot_product_attention(query, key, value)
    np.testing.assert_array_equal(weights, [[[[1, 0]]]])
    np.testing.assert_array_equal(out, [[[[1]]]])


@pytest.mark.parametrize(
    ("dtype", "digits", "jit_compile"), [("bfloat16", 8, True), ("float16", 11, True)]
)
def test_the_softmax_is_not_taken_in_16_bits(dtype, digits, jit_compile):
    """The scores are exact in the dtype, and the weights are rounded once, at the end."""
    query = tf.ones((1, 1, 1, 1), dtype)
    key = tf.cast(normal(1, 1, 97, 1), dtype)
    attend = tf.function(dot_product_attention, jit_compile=jit_compile)
    _, weights = attend(query, key, key, attention_mask=tf.ones((1, 1, 1, 97), "bool"))
    assert weights.dtype == dtype
    exact = reference.softmax(to_numpy(key)[0, 0, :, 0])
    half_a_unit = 2.0 ** (np.frexp(exact)[1] - digits - 1)
    assert np.all(np.abs(to_numpy(weights)[0, 0, 0] - exact) < half_a_unit * 1.01)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_query_that_may_attend_to_nothing(dtype):
    """It gets zeros and zero gradients; the other queries are unaffected."""
    tensors = [tf.cast(heads_first(x), dtype) for x in query_key_value()]
    mask = random_mask(B, 1, T, S, seed=6)
    full, _ = dot_product_attention(*tensors, attention_mask=mask)
    empty = mask.copy()
    empty[1, :, 4] = False
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        out, weights = dot_product_attention(*tensors, attention_mask=empty)
        loss = tf.reduce_sum(tf.cast(out, "float32") ** 2)
    out, weights, full = to_numpy(out), to_numpy(weights), to_numpy(full)
    assert np.all(out[1, :, 4] == 0)
    assert np.all(weights[1, :, 4] == 0)
    others = np.arange(T) != 4
    np.testing.assert_array_equal(out[0], full[0])
    np.testing.assert_array_equal(out[1][:, others], full[1][:, others])
    gradients = [to_numpy(gradient) for gradient in tape.gradient(loss, tensors)]
    assert all(np.all(np.isfinite(gradient)) for gradient in gradients)
    assert np.all(gradients[0][1, :, 4] == 0)


def test_dropout_is_applied_to_the_weights():
    query, key, value = (heads_first(x) for x in query_key_value())
    _, weights = dot_product_attention(query, key, value)
    out, dropped = dot_product_attention(query, key, value, dropout=lambda w: w * 0.5)
    np.testing.assert_allclose(out, to_numpy(weights) @ value * 0.5, atol=1e-5)
    assert dropped.shape == weights.shape


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("use_bias", [False, True])
def test_self_attention(causal, use_bias):
    layer = MultiHeadSelfAttention(H, d_k=K, d_v=KV, use_bias=use_bias, causal=causal)
    x, mask = normal(B, T, D), random_mask(B, T, T, seed=1)
    layer.build(x.shape)
    weights = weights_of(randomise(layer))
    assert weights["query/kernel"].shape == (D, H * K)
    assert weights["key/kernel"].shape == (D, H * K)
    assert weights["value/kernel"].shape == (D, H * KV)
    assert weights["output/kernel"].shape == (H * KV, D)
    assert len(weights) == (8 if use_bias else 4)
    seen = mask & np.tri(T, dtype=bool) if causal else mask
    expected, expected_weights = reference.multi_head(weights, x, x, seen, H)
    out, attended = layer(x, attention_mask=mask, return_attention_scores=True)
    np.testing.assert_allclose(out, expected, **LAYER)
    np.testing.assert_allclose(attended, expected_weights, **LAYER)
    np.testing.assert_array_equal(layer(x, attention_mask=mask), out)


@pytest.mark.parametrize("use_bias", [False, True])
def test_cross_attention(use_bias):
    layer = MultiHeadCrossAttention(H, d_k=K, d_v=KV, use_bias=use_bias)
    x, memory, mask = normal(B, T, D), normal(B, S, 31, seed=1), random_mask(B, 1, S, seed=2)
    layer.build(x.shape, memory.shape)
    weights = weights_of(randomise(layer))
    assert weights["key/kernel"].shape == (31, H * K), "the memory may have another width"
    seen = np.broadcast_to(mask, (B, T, S))
    expected, expected_weights = reference.multi_head(weights, x, memory, seen, H)
    out, attended = layer(x, memory, attention_mask=mask, return_attention_scores=True)
    np.testing.assert_allclose(out, expected, **LAYER)
    np.testing.assert_allclose(attended, expected_weights, **LAYER)
    np.testing.assert_array_equal(layer(x, memory, attention_mask=mask), out)


@pytest.mark.parametrize("heads", [1, 2, 11, 22])
def test_head_size_defaults_to_d_model_over_num_heads(heads):
    layer = MultiHeadSelfAttention(heads)
    x = normal(B, T, D)
    layer.build(x.shape)
    weights = weights_of(randomise(layer))
    assert {w.shape for w in weights.values()} == {(D, D)}
    expected, _ = reference.multi_head(weights, x, x, np.ones((B, T, T), bool), heads)
    np.testing.assert_allclose(layer(x), expected, **LAYER)


def test_causal_self_attention_never_looks_ahead():
    layer = MultiHeadSelfAttention(H, d_k=K, causal=True, d_v=KV)
    x = normal(B, T, D)
    before = to_numpy(layer(x))
    changed = x.copy()
    changed[:, 6] += 1
    after = to_numpy(layer(changed))
    np.testing.assert_array_equal(after[:, :6], before[:, :6])
    assert np.all(np.abs(after[:, 6:] - before[:, 6:]).max(-1) > 1e-4)


def test_a_masked_key_has_no_influence():
    layer = MultiHeadCrossAttention(H, d_k=K, d_v=KV)
    x, memory = normal(B, T, D), normal(B, S, D, seed=1)
    allowed = np.ones((B, 1, S), bool)
    allowed[1, 0, 9:] = False
    before = layer(x, memory, attention_mask=allowed)
    memory[1, 9:] = 1e3
    np.testing.assert_allclose(layer(x, memory, attention_mask=allowed), before, **LAYER)
    shorter = layer(x[1:], memory[1:, :9])
    np.testing.assert_allclose(before[1:], shorter, **LAYER)


def test_attention_does_not_depend_on_the_order_of_keys():
    layer = MultiHeadCrossAttention(H, d_k=K, d_v=KV)
    x, memory, allowed = normal(B, T, D), normal(B, S, D, seed=1), random_mask(B, T, S, seed=2)
    order = np.random.default_rng(3).permutation(S)
    np.testing.assert_allclose(
        layer(x, memory, attention_mask=allowed),
        layer(x, memory[:, order], attention_mask=allowed[:, :, order]),
        **LAYER,
    )


def test_attention_dropout_is_active_in_training_only():
    """At a rate of almost 1 almost nothing is attended to, and the output's bias remains."""
    layer = MultiHeadSelfAttention(H, d_k=K, d_v=KV, dropout=0.99999, use_bias=True)
    x = normal(B, T, D)
    layer.build(x.shape)
    weights = weights_of(randomise(layer))
    expected, _ = reference.multi_head(weights, x, x, np.ones((B, T, T), bool), H)
    np.testing.assert_allclose(layer(x), expected, **LAYER)
    np.testing.assert_allclose(layer(x, training=False), expected, **LAYER)
    bias = np.broadcast_to(weights["output/bias"], x.shape)
    np.testing.assert_allclose(layer(x, training=True), bias, **LAYER)


@pytest.mark.parametrize("layer_class", [MultiHeadSelfAttention, MultiHeadCrossAttention])
def test_rows_with_nothing_to_attend_to_stay_finite(policy, layer_class):
    layer = layer_class(H, d_k=K, d_v=KV, use_bias=True)
    x = tf.constant(normal(B, T, D))
    others = [tf.constant(normal(B, S, D))] if layer_class is MultiHeadCrossAttention else []
    allowed = np.zeros((B, 1, S if others else T), bool)
    allowed[0, 0, 0] = True
    layer(x, *others, attention_mask=allowed)
    randomise(layer)
    with tf.GradientTape() as tape:
        tape.watch([x, *others])
        out, weights = layer(x, *others, attention_mask=allowed, return_attention_scores=True)
        loss = tf.reduce_sum(tf.cast(out, "float32") ** 2)
    assert out.dtype == policy.compute_dtype
    bias = to_numpy(keras.ops.cast(layer.weights[-1], policy.compute_dtype))
    assert layer.weights[-1].path.endswith("output/bias")
    np.testing.assert_array_equal(to_numpy(out)[1], np.broadcast_to(bias, (T, D)))
    assert np.all(to_numpy(weights)[1] == 0)
    gradients = tape.gradient(loss, [x, *others, *layer.trainable_variables])
    for gradient in gradients:
        assert np.all(np.isfinite(to_numpy(gradient)))


def test_the_number_of_heads_must_be_positive():
    with pytest.raises(ValueError, match=r"`num_heads` must be .*Received: num_heads=0"):
        MultiHeadSelfAttention(0)


@pytest.mark.parametrize("sizes", [{}, {"d_k": K}, {"d_v": K}])
def test_heads_must_divide_the_width(sizes):
    message = r"`d_model` must be divisible by `num_heads`.*Received: d_model=22, num_heads=3"
    with pytest.raises(ValueError, match=message):
        MultiHeadSelfAttention(H, **sizes).build((B, T, D))
    with pytest.raises(ValueError, match=message):
        MultiHeadCrossAttention(H, **sizes).build((B, T, D), (B, S, D))


def attended(training, dtype, allowed):
    """Returns the result of `attend`, and its gradients by scores, values and a bias."""
    query, key, value = (tf.cast(heads_first(x), dtype) for x in query_key_value())
    scores, bias = tf.einsum("BHTK,BHSK->BHTS", query, key), tf.constant(normal(H, T, S))
    upstream = tf.cast(normal(B, H, T, KV, seed=8), dtype)
    arguments = [scores, value, bias]
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        out = attend(*arguments[:2], allowed, bias=bias, training=training)
    results = out, *tape.gradient(out, arguments, upstream)
    return [tf.cast(result, "float64").numpy() for result in results]


@pytest.mark.parametrize("mask_shape", [None, (B, 1, T, S), (1, 1, T, S), (B, 1, 1, S)])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-13), ("float32", 1e-6), ("bfloat16", 2**-6)]
)
def test_the_softmax_of_training_is_the_same(mask_shape, dtype, tolerance):
    """Only the order of operations differs, and where weights are rounded to 16 bits."""
    allowed = None if mask_shape is None else random_mask(*mask_shape, seed=6)
    if mask_shape is not None:
        allowed[-1, :, -1] = False  # a row or a sentence with nothing to attend to
    ours, theirs = (attended(training, dtype, allowed) for training in (True, False))
    for own, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, expected, rtol=0, atol=tolerance * np.abs(expected).max())
    if mask_shape is not None:
        assert not ours[0][-1, :, -1].any()
        assert not ours[1][-1, :, -1].any()


def test_the_softmax_of_training_over_one_key():
    value = heads_first(query_key_value()[2])[:, :, :1]
    scores = tf.constant(normal(B, H, T, 1))
    with tf.GradientTape() as tape:
        tape.watch(scores)
        out = attend(scores, value, training=True)
    np.testing.assert_array_equal(out, np.broadcast_to(value, out.shape))
    assert not to_numpy(tape.gradient(out, scores)).any()
