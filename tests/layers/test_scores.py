"""Scores of every kind against loops over queries and keys; cached keys; 16 bits."""

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from keras import ops
from support import KV, B, D, F, H, K, S, T, normal, random_mask, randomise, to_numpy, weights_of

from keras_transformer import EncoderBlock, MultiHeadSelfAttention, Transformer, TransformerConfig
from keras_transformer.config import BlockConfig
from keras_transformer.layers import (
    Additive,
    AttentionScore,
    DotProduct,
    General,
    MultiHeadCrossAttention,
    ScaledDotProduct,
)
from keras_transformer.layers.kernels import Kernels

NAMES = {
    "scaled_dot_product": ScaledDotProduct,
    "dot_product": DotProduct,
    "general": General,
    "additive": Additive,
}
each_score = pytest.mark.parametrize("name", NAMES)


def score_reference(name, weights):
    """Returns the score of one query and key of a head in float64; removes the used weights."""
    if name == "additive":
        matrices = weights.pop("score_query"), weights.pop("score_key")
        vector = weights.pop("score_vector")[:, 0, 0]

        def additive(query, key, head):
            hidden = [
                np.tanh(sum(query[i] * w[head, i, j] + key[i] * u[head, i, j] for i in range(K)))
                for w, u in [matrices]
                for j in range(K)
            ]
            return sum(vector[head, j] * hidden[j] for j in range(K))

        return additive
    if name == "general":
        matrix = weights.pop("score_matrix")
        return lambda query, key, head: sum(
            query[i] * matrix[head, i, j] * key[j] for i in range(K) for j in range(K)
        )
    scale = K**0.5 if name == "scaled_dot_product" else 1
    return lambda query, key, head: sum(query * key) / scale


@each_score
@pytest.mark.parametrize("causal", [False, True])
def test_self_attention(name, causal):
    layer = MultiHeadSelfAttention(H, d_k=K, d_v=KV, causal=causal, score=name)
    x, mask = normal(B, T, D), random_mask(B, T, T, seed=1)
    layer.build(x.shape)
    weights = weights_of(randomise(layer))
    score = score_reference(name, weights)
    assert len(weights) == 4
    seen = mask & np.tri(T, dtype=bool) if causal else mask
    expected, expected_weights = reference.multi_head(weights, x, x, seen, H, score=score)
    out, attended = layer(x, attention_mask=mask, return_attention_scores=True)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(attended, expected_weights, rtol=0, atol=1e-5)


@each_score
def test_cross_attention(name):
    layer = MultiHeadCrossAttention(H, d_k=K, d_v=KV, score=name)
    x, memory, mask = normal(B, T, D), normal(B, S, 31, seed=1), random_mask(B, 1, S, seed=2)
    layer.build(x.shape, memory.shape)
    weights = weights_of(randomise(layer))
    score = score_reference(name, weights)
    seen = np.broadcast_to(mask, (B, T, S))
    expected, _ = reference.multi_head(weights, x, memory, seen, H, score=score)
    np.testing.assert_allclose(layer(x, memory, attention_mask=mask), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("position", ["alibi", "rotary"])
def test_a_score_and_a_position_combined(position):
    """The heads are rotated first, then the score is computed, then the bias is added."""
    size = 6
    layer = MultiHeadSelfAttention(H, d_k=size, d_v=KV, score="dot_product", position=position)
    x = normal(B, T, D)
    layer.build(x.shape)
    weights = weights_of(randomise(layer))
    query, key, value = (
        reference.split_heads(reference.dense(reference.scope(weights, name), x), H)
        for name in ("query", "key", "value")
    )
    bias = np.zeros((H, T, T))
    if position == "rotary":
        query, key = reference.rotated(query), reference.rotated(key)
    else:
        for h, i, j in np.ndindex(bias.shape):
            bias[h, i, j] = -[1 / 16, 1 / 256, 1 / 4][h] * abs(i - j)
    everything = np.ones((B, T, T), bool)
    heads, _ = reference.attention(query, key, value, everything, lambda q, k, head: q @ k, bias)
    expected = reference.dense(reference.scope(weights, "output"), heads.reshape(B, T, -1))
    np.testing.assert_allclose(layer(x), expected, rtol=0, atol=1e-5)


@each_score
def test_every_score_has_gradients_for_all_its_weights(name, policy):
    layer = MultiHeadSelfAttention(H, d_k=K, d_v=KV, score=name)
    x = normal(B, T, D)
    layer.build(x.shape)
    randomise(layer)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.cast(layer(x), "float32") ** 2)
    for weight, gradient in zip(
        layer.trainable_variables, tape.gradient(loss, layer.trainable_variables), strict=True
    ):
        assert np.isfinite(to_numpy(gradient)).all() and np.any(to_numpy(gradient)), weight.path


def test_a_product_beyond_the_range_of_float16():
    """q k = 129,600 for two keys that differ by 1 %: the larger score takes all the weight."""
    layer = MultiHeadSelfAttention(1, score="dot_product", dtype="mixed_float16")
    layer.build((1, 1, 64))
    query = ops.full((1, 1, 1, 64), 45, "float16")
    key = ops.concatenate([query, query * 0.99], axis=2)
    query = layer.score.prepare_query(layer, query)
    _, weights = layer.attend_with_weights(query, key, key)
    np.testing.assert_array_equal(weights, [[[[1, 0]]]])


@each_score
def test_only_dot_products_use_the_kernel(name):
    """A runtime's fused form of `Q K^T` computes no other score."""
    calls = []

    def similarity(query, key):
        calls.append(query.shape)
        return ops.einsum("BHTK,BHSK->BHTS", query, key)

    layer = MultiHeadSelfAttention(H, d_k=K, score=name, d_v=KV, kernels=Kernels(similarity))
    layer(normal(B, T, D))
    assert bool(calls) == (name != "additive")


@pytest.mark.slow
@each_score
def test_it_is_saved_in_a_file(name, small_model, tmp_path):
    model = small_model(score=name)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    inputs = {"source": np.array([[5, 6, 3]]), "target": np.array([[2, 7, 8, 9]])}
    np.testing.assert_array_equal(loaded(inputs), model(inputs))
    for attention in (loaded.encoder.blocks[0].self_attention, loaded.decoder.blocks[1]):
        attention = getattr(attention, "cross_attention", attention)
        assert type(attention.score) is NAMES[name]


def test_a_layer_saved_before_there_were_scores():
    config = MultiHeadSelfAttention(H).get_config()
    del config["score"]
    assert type(MultiHeadSelfAttention.from_config(config).score) is ScaledDotProduct


def test_the_names_are_those_of_the_configuration():
    assert AttentionScore.kinds().items() >= NAMES.items()
    assert (
        BlockConfig().mixer.score
        == TransformerConfig().encoder.block.attention.score
        == ScaledDotProduct()
    )


def test_unknown_scores_are_refused():
    names = "additive, dot_product, general, scaled_dot_product"
    message = rf"`score` must be one of {names}.* a table .*'cosine'"
    with pytest.raises(ValueError, match=message):
        MultiHeadCrossAttention(H, score="cosine")
    with pytest.raises(ValueError, match=message):
        EncoderBlock(H, F, score="cosine")


def test_parameters_of_scores():
    """In all five attentions of the model: one or two of [H, K, K], and one [H, K]."""
    from support import small_config

    counts = [Transformer(small_config(score=name)).count_params() for name in NAMES]
    assert np.subtract(counts, counts[0]).tolist() == [
        *(0, 0, 5 * H * K * K),
        5 * (2 * H * K * K + H * K),
    ]


def test_a_general_score_starts_with_the_variance_of_eq_1():
    """For queries and keys of variance 1; the variance of `q k` would be `d_k`, 64."""
    layer = MultiHeadSelfAttention(2, score="general")
    layer.build((1, 1, 128))
    query, key = normal(1, 2, 400, 64), normal(1, 2, 400, 64, seed=1)
    scores = layer.score.compare(layer, layer.score.prepare_query(layer, query), key)
    assert 0.8 < np.var(scores) < 1.2


@each_score
def test_a_score_that_is_linear_in_the_key(name):
    layer = MultiHeadSelfAttention(H, d_k=K, d_v=KV, score=name)
    layer.build((B, T, D))
    randomise(layer)
    query = layer.score.prepare_query(layer, normal(B, H, T, K))
    keys = [normal(B, H, S, K, seed=seed) for seed in (1, 2)]
    one, two, both = (
        to_numpy(layer.score.compare(layer, query, layer.score.prepare_key(layer, key)))
        for key in (*keys, sum(keys))
    )
    assert layer.score.is_linear == (np.abs(one + two - both).max() < 1e-4) == (name != "additive")
