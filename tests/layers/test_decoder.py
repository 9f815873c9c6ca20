"""DecoderBlock and Decoder against the reference: causality, two masks, one step at a time."""

import numpy as np
import pytest
import reference
import tensorflow as tf
from support import KV, B, D, F, H, K, S, T, normal, random_mask, randomise, to_numpy, weights_of

from keras_transformer import Decoder, DecoderBlock

LAYER = {"rtol": 0, "atol": 1e-5}
BLOCK = {"num_heads": H, "d_ff": F, "d_k": K, "d_v": KV, "dropout": 0.0}
SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")


def built(layer):
    layer.build((B, T, D), (B, S, D))
    return randomise(layer), weights_of(layer)


def arguments():
    """Returns x, memory, a mask [B, T, T] that allows the diagonal, and a mask [B, 1, S]."""
    allowed = random_mask(B, T, T, seed=2) | np.eye(T, dtype=bool)
    return normal(B, T, D), normal(B, S, D, seed=1), allowed, random_mask(B, 1, S, seed=3)


def unmasked():
    return np.ones((B, T, T), bool), np.ones((B, T, S), bool)


@pytest.mark.parametrize("attention_bias", [False, True])
@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_block(norm, activation, attention_bias):
    options = {"norm": norm, "activation": activation}
    block, weights = built(DecoderBlock(**BLOCK, **options, attention_bias=attention_bias))
    assert len(weights) == 8 + 8 * attention_bias + 4 + 6
    x, memory, allowed, memory_allowed = arguments()
    seen, record = np.broadcast_to(memory_allowed, (B, T, S)), {}
    expected = reference.decoder_block(
        weights, x, memory, allowed, seen, H, **options, record=record
    )
    out, attended = block(
        x,
        memory,
        attention_mask=allowed,
        memory_attention_mask=memory_allowed,
        return_attention_scores=True,
    )
    np.testing.assert_allclose(out, expected, **LAYER)
    assert sorted(attended) == ["cross_attention", "self_attention"]
    for name, attention_weights in attended.items():
        np.testing.assert_allclose(attention_weights, record[name], **LAYER)


def test_masks_may_be_absent():
    block, weights = built(DecoderBlock(**BLOCK))
    x, memory, _, _ = arguments()
    expected = reference.decoder_block(weights, x, memory, *unmasked(), H)
    np.testing.assert_allclose(block(x, memory), expected, **LAYER)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_changed_future_leaves_earlier_positions_unchanged(norm):
    decoder, _ = built(Decoder(num_layers=2, **BLOCK, norm=norm))
    x, memory, _, _ = arguments()
    before = to_numpy(decoder(x, memory))
    x[:, 6] += normal(D, seed=9)
    after = to_numpy(decoder(x, memory))
    np.testing.assert_array_equal(after[:, :6], before[:, :6])
    assert np.all(np.abs(after[:, 6:] - before[:, 6:]).max(-1) > 1e-3)


def test_masked_memory_has_no_influence_in_any_layer():
    """Keras's own attention loses an implicit mask after the first layer; our mask is explicit."""
    decoder, _ = built(Decoder(num_layers=3, **BLOCK))
    x, memory, _, _ = arguments()
    allowed = np.ones((B, 1, S), bool)
    allowed[1, 0, 9:] = False
    before = to_numpy(decoder(x, memory, memory_attention_mask=allowed))
    memory[1, 9:] = 50
    after = decoder(x, memory, memory_attention_mask=allowed)
    np.testing.assert_allclose(after, before, **LAYER)
    shorter = decoder(x[1:], memory[1:, :9])
    np.testing.assert_allclose(shorter, before[1:], **LAYER)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_is_applied_to_each_sublayer_before_the_sum(norm):
    """At a rate of almost 1 all sublayers vanish: x remains, normalised thrice in post-norm."""
    block, weights = built(DecoderBlock(**{**BLOCK, "dropout": 0.99999}, norm=norm))
    x, memory, _, _ = arguments()
    expected = x.astype("float64")
    if norm == "post":
        for name in SUBLAYERS:
            expected = reference.layer_norm(reference.scope(weights, name + "_norm"), expected)
    np.testing.assert_allclose(block(x, memory, training=True), expected, **LAYER)
    expected = reference.decoder_block(weights, x, memory, *unmasked(), H, norm=norm)
    np.testing.assert_allclose(block(x, memory, training=False), expected, **LAYER)


@pytest.mark.parametrize(
    ("rate", "silenced"),
    [
        ("attention_dropout", ["self_attention/output/kernel", "cross_attention/output/kernel"]),
        ("activation_dropout", ["feed_forward/outer/kernel"]),
    ],
)
def test_inner_dropouts_reach_their_sublayers(rate, silenced):
    block, weights = built(DecoderBlock(**BLOCK, **{rate: 0.99999}))
    x, memory, _, _ = arguments()
    for name in silenced:
        weights[name] *= 0
    expected = reference.decoder_block(weights, x, memory, *unmasked(), H)
    np.testing.assert_allclose(block(x, memory, training=True), expected, **LAYER)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_stack(norm):
    decoder, weights = built(Decoder(num_layers=3, **BLOCK, norm=norm))
    assert ("norm/gamma" in weights) == (norm == "pre")
    x, memory, allowed, memory_allowed = arguments()
    seen, record = np.broadcast_to(memory_allowed, (B, T, S)), {}
    expected = reference.decoder(weights, x, memory, allowed, seen, 3, H, norm=norm, record=record)
    out, attended = decoder(
        x,
        memory,
        attention_mask=allowed,
        memory_attention_mask=memory_allowed,
        return_attention_scores=True,
    )
    np.testing.assert_allclose(out, expected, **LAYER)
    assert len(attended) == 6
    for n in range(3):
        for name in ("self_attention", "cross_attention"):
            np.testing.assert_allclose(
                attended[f"block_{n}/{name}"], record[f"block_{n}"][name], **LAYER
            )


def test_one_step_at_a_time_equals_the_whole_sentence(norm="pre"):
    """The cache has more positions than the sentence: unwritten positions are not seen."""
    decoder, weights = built(Decoder(num_layers=2, **BLOCK, norm=norm))
    x, memory, _, memory_allowed = arguments()
    seen = np.broadcast_to(memory_allowed, (B, T, S))
    expected = reference.decoder(weights, x, memory, unmasked()[0], seen, 2, H, norm=norm)
    heads = decoder.project_memory(memory)
    cache = decoder.empty_cache(B, T + 4)
    for t in range(T):
        out, cache, _ = decoder.step(
            tf.constant(x[:, t : t + 1]), cache, tf.constant(t), heads, memory_allowed
        )
        np.testing.assert_allclose(to_numpy(out)[:, 0], expected[:, t], **LAYER)


def test_hypotheses_attend_to_the_places_of_their_ancestors():
    """Three hypotheses change places at each step: the cache stays, and the mask follows."""
    decoder, weights = built(Decoder(num_layers=2, **BLOCK))
    _, memory, _, memory_allowed = arguments()
    width, length = 3, T + 4
    x = normal(B, width, T, D)  # whole sentence of each hypothesis
    rng = np.random.default_rng(4)
    places = np.array([rng.permutation(width) for _ in range(B * T)]).reshape(B, T, width)
    seen = np.broadcast_to(memory_allowed, (B, T, S))
    expected = [
        reference.decoder(weights, x[:, n], memory, unmasked()[0], seen, 2, H) for n in range(width)
    ]
    heads = decoder.project_memory(memory)
    cache = decoder.empty_cache(B, length, width)
    # Axes: current place, position, place at that position.
    allowed = np.zeros((B, width, length, width), bool)
    for t in range(T):
        now = places[:, t]  # [B, N]: the place of each hypothesis in the cache
        allowed[:] = False
        step = np.zeros((B, width, D), "float32")
        for b, n in np.ndindex(B, width):
            step[b, now[b, n]] = x[b, n, t]
            allowed[b, now[b, n], np.arange(t + 1), places[b, : t + 1, n]] = True
        flat = tf.constant(allowed.reshape(B, width, length * width))
        out, cache, _ = decoder.step(
            tf.constant(step), cache, tf.constant(t), heads, memory_allowed, flat
        )
        for b, n in np.ndindex(B, width):
            np.testing.assert_allclose(to_numpy(out)[b, now[b, n]], expected[n][b, t], **LAYER)


@pytest.mark.parametrize(
    ("policy", "norm"), [("mixed_bfloat16", "post"), ("mixed_float16", "pre")], indirect=["policy"]
)
def test_rows_with_nothing_to_attend_to_stay_finite(policy, norm):
    decoder = Decoder(num_layers=2, **BLOCK, norm=norm)
    x, memory = tf.constant(normal(B, T, D)), tf.constant(normal(B, S, D, seed=1))
    allowed, memory_allowed = np.ones((B, 1, T), bool), np.zeros((B, 1, S), bool)
    allowed[0, 0, :4] = False
    memory_allowed[1, 0, :5] = True
    decoder(x, memory)
    randomise(decoder)
    with tf.GradientTape() as tape:
        tape.watch([x, memory])
        out = decoder(x, memory, attention_mask=allowed, memory_attention_mask=memory_allowed)
        loss = tf.reduce_mean(tf.cast(out, "float32") ** 2)
    assert out.dtype == policy.compute_dtype
    assert np.all(np.isfinite(to_numpy(out)))
    for gradient in tape.gradient(loss, [x, memory, *decoder.trainable_variables]):
        assert np.all(np.isfinite(to_numpy(gradient)))


@pytest.mark.parametrize("layer", [DecoderBlock, lambda **kw: Decoder(num_layers=1, **kw)])
def test_an_unknown_norm_is_an_error(layer):
    with pytest.raises(
        ValueError, match=r"`norm` must be one of post, pre, .*\. Received: norm='sandwich'"
    ):
        layer(**BLOCK, norm="sandwich")


def test_a_stack_has_at_least_one_block():
    with pytest.raises(ValueError, match=r"`num_layers` must be .*Received: num_layers=0"):
        Decoder(num_layers=0, **BLOCK)
