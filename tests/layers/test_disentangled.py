"""Disentangled positions against a second implementation, one score at a time."""

import math

import numpy as np
import pytest
from support import KV, B, D, F, H, K, S, normal, random_mask, randomise, weights_of

from keras_transformer import Encoder, MultiHeadSelfAttention, TransformerConfig
from keras_transformer.models import ClassifierConfig
from keras_transformer.positions import Disentangled
from keras_transformer.positions.disentangled import disentangled_buckets

DISTANCE, BUCKETS = 7, 12  # farther ones occur in S positions


def bucket(distance):
    """Returns the bucket of query minus key, as in the authors' code."""
    count, exact, far = BUCKETS // 2, BUCKETS // 4, abs(distance)
    if far > exact:
        octaves = math.log(far / exact) / math.log((DISTANCE - 1) / exact)
        far = exact + math.ceil(octaves * (exact - 1) - 1e-9)
    return min(max(count + int(math.copysign(far, distance)), 0), BUCKETS - 1)


def attention_reference(weights, x, allowed, vectors, matrix=None):
    """Self-attention, one query and key at a time, in float64; `matrix`: of the general score."""

    def heads(name, x):
        product = x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]
        return product.reshape(*x.shape[:-1], H, -1)

    query, key, value = (heads(name, x) for name in ("query", "key", "value"))
    far_query, far_key = heads("query", vectors), heads("key", vectors)
    out = np.zeros((*x.shape[:2], H, value.shape[-1]))
    for b, h, i in np.ndindex(len(x), H, x.shape[1]):
        scores = np.full(x.shape[1], -np.inf)
        for j in range(x.shape[1]):
            row = bucket(i - j)
            one = np.eye(K) if matrix is None else matrix[h]
            score = query[b, i, h] @ one @ (key[b, j, h] + far_key[row, h])
            score += far_query[row, h] @ one @ key[b, j, h]
            if allowed[b, 0, j]:
                scores[j] = score / (math.sqrt(K) if matrix is None else 1.0)
        shares = np.exp(scores - scores.max())
        out[b, i, h] = shares / shares.sum() @ value[b, :, h]
    flat = out.reshape(*x.shape[:2], -1)
    return flat @ weights["output/kernel"] + weights["output/bias"]


@pytest.mark.parametrize("score", ["scaled_dot_product", "general"])
def test_an_attention_equals_the_reference(score):
    layer = MultiHeadSelfAttention(
        H, d_k=K, d_v=KV, use_bias=True, position=Disentangled(DISTANCE, BUCKETS), score=score
    )
    x, mask = normal(B, S, D), random_mask(B, 1, S, seed=1)
    layer.build(x.shape)
    weights = weights_of(randomise(layer))
    vectors, matrix = weights["distance_vectors"], weights.get("score_matrix")
    expected = attention_reference(weights, x.astype("float64"), mask, vectors, matrix)
    out, _ = layer(x, mask, return_attention_scores=True)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(layer(x, mask), expected, rtol=0, atol=1e-5)


def test_blocks_share_the_table_and_project_it_themselves():
    options = {"num_heads": H, "d_ff": F, "norm": "pre", "attention_bias": True}
    one, two = (
        Encoder(2, **options, d_k=K, d_v=KV, position=Disentangled(DISTANCE, BUCKETS, shares))
        for shares in (True, False)
    )
    x = normal(B, S, D)
    for encoder in (one, two):
        encoder.build(x.shape)
        randomise(encoder)
    tables = [w for w in two.weights if w.path.endswith("distance_vectors")]
    assert len(tables) == 2 and len(two.weights) == len(one.weights) + 1
    values = weights_of(one)
    for weight in two.weights:
        name = weight.path.split("/", 1)[1]
        name = name.replace("block_1/self_attention/distance", "block_0/self_attention/distance")
        weight.assign(values[name])
    np.testing.assert_allclose(two(x), one(x), rtol=0, atol=1e-5)


def test_padding_and_the_number_of_texts_change_nothing():
    layer = MultiHeadSelfAttention(H, d_k=K, d_v=KV, position=Disentangled(DISTANCE, BUCKETS))
    x = normal(B, S, D)
    layer.build(x.shape)
    randomise(layer)
    alone = layer(x[:1, :5])
    allowed = np.arange(S)[None, None] < np.full((B, 1, 1), 5)
    np.testing.assert_allclose(layer(x, allowed)[:1, :5], alone, rtol=0, atol=1e-5)
    assert np.all(np.isfinite(layer(x[:, :1])))


def test_buckets_of_the_published_models():
    """256 buckets in each direction, and distances of up to 512 tokens."""
    rows = disentangled_buckets(512, 512)
    assert rows[512:641].tolist() == [*range(256, 385)]  # distances of up to 128 have their own
    assert rows[-1] == 511 and rows[:2].tolist() == [0, 1] and rows[512 - 128] == 128
    assert np.all(np.diff(rows) >= 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MultiHeadSelfAttention(4, causal=True, position=Disentangled()),
         '`position` must not be "disentangled" in causal'),
        (lambda: MultiHeadSelfAttention(4, score="additive", position=Disentangled()),
         "`score` must be a product of query and key"),
        (lambda: MultiHeadSelfAttention(4, num_key_value_heads=2, position=Disentangled()),
         "`num_key_value_heads` must be None with disentangled"),
    ],
)  # fmt: skip
def test_what_it_does_not_fit_is_named(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()(np.zeros((2, 3, 8), "float32"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"position": "disentangled", "score": "additive"}, "`score` must be a product of query"),
        ({"position": "disentangled", "num_key_value_heads": 2}, "`num_key_value_heads` must be"),
        ({"position": {"kind": "disentangled", "buckets": 6}}, "`buckets` must be a multiple"),
        ({"position": "rotary", "attention_position": "t5"}, "`attention_position` must be 'none"),
        ({"position": {"kind": "learned", "buckets": 8}}, "'learned' has no options"),
        ({"attention_position": "rotary", "d_k": 7}, "`d_k` must be even for rotary positions"),
        ({"attention_position": "binary"}, "`attention_position` must act in self-attention"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        ClassifierConfig(vocab_size=9, **options)


def test_a_decoder_of_ssrus_has_no_position_in_attention():
    with pytest.raises(ValueError, match="`attention_position` must be added to"):
        TransformerConfig(decoder={"mixer": "ssru", "attention_position": "t5"})
