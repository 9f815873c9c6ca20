"""EncoderBlock and Encoder against the reference: post-norm, pre-norm, masks, dropout."""

import numpy as np
import pytest
import reference
import tensorflow as tf
from support import KV, B, D, F, H, K, S, normal, random_mask, randomise, to_numpy, weights_of

from keras_transformer import Encoder, EncoderBlock
from keras_transformer.layers import LayerNorm

LAYER = {"rtol": 0, "atol": 1e-5}
BLOCK = {"num_heads": H, "d_ff": F, "d_k": K, "d_v": KV, "dropout": 0.0}


def built(layer):
    layer.build((B, S, D))
    return randomise(layer), weights_of(layer)


@pytest.mark.parametrize("attention_bias", [False, True])
@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_block(norm, activation, attention_bias):
    options = {"norm": norm, "activation": activation}
    block, weights = built(EncoderBlock(**BLOCK, **options, attention_bias=attention_bias))
    assert ("self_attention/query/bias" in weights) == attention_bias
    assert len(weights) == 4 + 4 * attention_bias + 4 + 4
    x, mask, record = normal(B, S, D), random_mask(B, S, S, seed=1), {}
    expected = reference.encoder_block(weights, x, mask, H, **options, record=record)
    out, attended = block(x, attention_mask=mask, return_attention_scores=True)
    np.testing.assert_allclose(out, expected, **LAYER)
    assert list(attended) == ["self_attention"]
    np.testing.assert_allclose(attended["self_attention"], record["self_attention"], **LAYER)
    np.testing.assert_array_equal(block(x, attention_mask=mask), out)


def test_the_mask_may_be_the_same_for_every_query_or_absent():
    block, weights = built(EncoderBlock(**BLOCK))
    x, mask = normal(B, S, D), random_mask(B, 1, S, seed=1)
    expected = reference.encoder_block(weights, x, np.broadcast_to(mask, (B, S, S)), H)
    np.testing.assert_allclose(block(x, attention_mask=mask), expected, **LAYER)
    expected = reference.encoder_block(weights, x, np.ones((B, S, S), bool), H)
    np.testing.assert_allclose(block(x), expected, **LAYER)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_epsilon_is_inside_the_root(norm):
    """Inputs are so small that their variance is of the order of epsilon."""
    block, weights = built(EncoderBlock(**BLOCK, norm=norm, normalization=LayerNorm(0.03)))
    x = normal(B, S, D) * 0.1
    allowed = np.ones((B, S, S), bool)
    expected = reference.encoder_block(weights, x, allowed, H, norm=norm, epsilon=0.03)
    np.testing.assert_allclose(block(x), expected, **LAYER)


def test_post_norm_ends_in_a_norm_and_pre_norm_in_a_sum():
    x = normal(B, S, D) * 5
    post = to_numpy(EncoderBlock(**BLOCK)(x))
    np.testing.assert_allclose(post.mean(-1), 0, atol=1e-5)
    np.testing.assert_allclose(post.std(-1), 1, atol=1e-3)
    pre, weights = built(EncoderBlock(**BLOCK, norm="pre"))
    pre.set_weights([np.zeros(w.shape) for w in pre.weights])
    np.testing.assert_array_equal(pre(x), x)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_is_applied_to_each_sublayer_before_the_sum(norm):
    """At a rate of almost 1 both sublayers vanish: x remains, normalised twice in post-norm."""
    block, weights = built(EncoderBlock(**{**BLOCK, "dropout": 0.99999}, norm=norm))
    x = normal(B, S, D).astype("float64")
    expected = x
    if norm == "post":
        for name in ("self_attention_norm", "feed_forward_norm"):
            expected = reference.layer_norm(reference.scope(weights, name), expected)
    np.testing.assert_allclose(block(x.astype("float32"), training=True), expected, **LAYER)
    everything = np.ones((B, S, S), bool)
    expected = reference.encoder_block(weights, x, everything, H, norm=norm)
    np.testing.assert_allclose(block(x.astype("float32"), training=False), expected, **LAYER)


@pytest.mark.parametrize(
    ("rate", "silenced"),
    [("attention_dropout", "self_attention"), ("activation_dropout", "feed_forward")],
)
def test_inner_dropouts_reach_their_sublayer(rate, silenced):
    block, weights = built(EncoderBlock(**BLOCK, **{rate: 0.99999}))
    x, everything = normal(B, S, D), np.ones((B, S, S), bool)
    expected = reference.encoder_block(weights, x, everything, H)
    np.testing.assert_allclose(block(x), expected, **LAYER)
    last = "output/kernel" if silenced == "self_attention" else "outer/kernel"
    weights[f"{silenced}/{last}"] *= 0
    expected = reference.encoder_block(weights, x, everything, H)
    np.testing.assert_allclose(block(x, training=True), expected, **LAYER)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_stack(norm):
    encoder, weights = built(Encoder(num_layers=3, **BLOCK, norm=norm))
    assert ("norm/gamma" in weights) == (norm == "pre")
    x, mask, record = normal(B, S, D), random_mask(B, 1, S, seed=1), {}
    seen = np.broadcast_to(mask, (B, S, S))
    expected = reference.encoder(weights, x, seen, 3, H, norm=norm, record=record)
    out, attended = encoder(x, attention_mask=mask, return_attention_scores=True)
    np.testing.assert_allclose(out, expected, **LAYER)
    assert list(attended) == [f"block_{n}/self_attention" for n in range(3)]
    for n in range(3):
        np.testing.assert_allclose(
            attended[f"block_{n}/self_attention"], record[f"block_{n}"]["self_attention"], **LAYER
        )
    np.testing.assert_array_equal(encoder(x, attention_mask=mask), out)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_rows_with_nothing_to_attend_to_stay_finite(policy, norm):
    encoder = Encoder(num_layers=2, **BLOCK, norm=norm)
    x, allowed = tf.constant(normal(B, S, D)), np.zeros((B, 1, S), bool)
    allowed[0, 0, :5] = True
    encoder(x, attention_mask=allowed)
    randomise(encoder)
    with tf.GradientTape() as tape:
        tape.watch(x)
        out = encoder(x, attention_mask=allowed)
        loss = tf.reduce_mean(tf.cast(out, "float32") ** 2)
    assert out.dtype == policy.compute_dtype
    assert np.all(np.isfinite(to_numpy(out)))
    for gradient in tape.gradient(loss, [x, *encoder.trainable_variables]):
        assert np.all(np.isfinite(to_numpy(gradient)))


@pytest.mark.parametrize("layer", [EncoderBlock, lambda **kw: Encoder(num_layers=1, **kw)])
def test_an_unknown_norm_is_an_error(layer):
    with pytest.raises(
        ValueError, match=r"`norm` must be one of post, pre, .*\. Received: norm='sandwich'"
    ):
        layer(**BLOCK, norm="sandwich")


def test_a_stack_has_at_least_one_block():
    with pytest.raises(ValueError, match=r"`num_layers` must be .*Received: num_layers=0"):
        Encoder(num_layers=0, **BLOCK)
