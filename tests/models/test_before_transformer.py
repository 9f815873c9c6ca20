"""Models from before the Transformer, made of options, against loops in float64."""

import json

import keras
import numpy as np
import pytest
import reference
from support import (
    KV,
    B,
    D,
    F,
    H,
    K,
    S,
    T,
    normal,
    randomise,
    sentences,
    small_config,
    weights_of,
)

import keras_transformer as kt
from keras_transformer import EncoderBlock, Transformer, TransformerConfig

MODEL = {"rtol": 0, "atol": 1e-4}
BAHDANAU = {
    "mixer": "gru",
    "cross_attention": {"num_heads": 1, "score": "additive"},
    "feed_forward": "none",
    "normalization": "none",
    "position": "none",
    "embedding_scale": 1.0,
    "tie": "none",
    "num_layers": 1,
    "num_decoder_layers": 1,
    "dropout": 0.0,
}
SIZES = {"vocab_size": 19, "d_model": 10}


def additive_attention(weights, states, memory, real):
    """Bahdanau et al. (2015), appendix A.1.2, one position at a time, after linear maps."""
    query, key, value, output = (
        weights[f"{name}/kernel"] for name in ["query", "key", "value", "output"]
    )
    out = np.zeros_like(states)
    for b, t in np.ndindex(states.shape[:2]):
        energies = np.full(memory.shape[1], -np.inf)
        for s in np.flatnonzero(real[b]):
            of_state = states[b, t] @ query @ weights["score_query"][0]
            of_word = memory[b, s] @ key @ weights["score_key"][0]
            energies[s] = weights["score_vector"].ravel() @ np.tanh(of_state + of_word)
        alignment = np.exp(energies - energies.max())
        alignment /= alignment.sum()
        context = sum(
            weight * word @ value for weight, word in zip(alignment, memory[b], strict=True)
        )
        out[b, t] = context @ output
    return out


def bahdanau(weights, source, target):
    """Returns the logits `[B, T, V]`: sums of a word, its recurrent state and its context."""
    real = source != 0
    x = weights["source_embedding/table"][source]
    gru = reference.scope(weights, "encoder/block_0/gru")
    memory = x + reference.gru(gru, x, real, causal=False)
    y = weights["target_embedding/table"][target]
    gru = reference.scope(weights, "decoder/block_0/gru")
    states = y + reference.gru(gru, y, np.ones(target.shape, bool), causal=True)
    attention = reference.scope(weights, "decoder/block_0/cross_attention")
    states = states + additive_attention(attention, states, memory, real)
    return states @ weights["output/kernel"]


def test_bahdanaus_model_follows_its_formulas():
    model = randomise(Transformer(TransformerConfig(**SIZES, **BAHDANAU)))
    source, target = sentences([S, 5]), sentences([T, 7], first=2)
    weights = weights_of(model)
    assert not any("norm" in path or "feed_forward" in path for path in weights)
    expected = bahdanau(weights, source, target)
    np.testing.assert_allclose(model({"source": source, "target": target}), expected, **MODEL)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_scale_multiplies_by_its_constant(norm):
    options = {"num_heads": H, "d_k": K, "d_v": KV, "dropout": 0.0, "norm": norm}
    scaled = EncoderBlock(d_ff=F, **options, normalization={"kind": "scale", "factor": 0.3})
    plain, x = EncoderBlock(d_ff=F, **options), normal(B, T, D)
    for block in (scaled, plain):
        block.build((None, None, D))
    randomise(plain)
    for block in ("self_attention", "feed_forward"):
        getattr(scaled, block).set_weights(getattr(plain, block).get_weights())
    expected = x
    for name in ("self_attention", "feed_forward"):
        sublayer = getattr(plain, name)
        if norm == "post":
            expected = 0.3 * (expected + sublayer(expected))
        else:
            expected = expected + sublayer(0.3 * expected)
    np.testing.assert_allclose(scaled(x), expected, rtol=0, atol=1e-5)
    assert scaled.config.block.normalization == kt.layers.Scale(0.3)


def test_blocks_without_feed_forward_networks_are_saved_and_have_no_such_options():
    block = EncoderBlock(num_heads=2, d_ff=None, feed_forward="none", normalization="none")
    config = json.loads(json.dumps(block.get_config()))
    assert "activation" not in config and config["d_ff"] is None
    assert EncoderBlock.from_config(config).config == block.config
    config = TransformerConfig.preset("tiny", feed_forward="none")
    assert not {"d_ff", "activation", "activation_dropout"} & {*config.to_flat()}
    assert config == config.with_data(vocab_size=config.input.vocab_size)


@pytest.mark.parametrize("without", ["encoder", "decoder"])
def test_one_stack_alone_may_have_no_feed_forward_network(without):
    config = small_config(**{without: {"feed_forward": "none"}}, num_layers=2)
    other = "decoder" if without == "encoder" else "encoder"
    assert getattr(config, other).block.d_ff == F
    assert TransformerConfig(**config.to_flat()) == config
    assert TransformerConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    paths = {weight.path.partition("/block_0/")[2] for weight in Transformer(config).weights}
    assert "feed_forward/inner/kernel" in paths
    blocks = {name: getattr(Transformer(config), name).blocks[0] for name in (without, other)}
    assert [hasattr(block, "feed_forward") for block in blocks.values()] == [False, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d_ff": F}, r"`d_ff` has no effect on a `TransformerConfig` .*feed_forward=NoNetwork"),
        ({"activation": "gelu"}, "`activation` has no effect .*feed_forward=NoNetwork"),
        ({"activation_dropout": 0.1}, "`activation_dropout` has no effect"),
        ({"norm": "pre"}, r"`norm` has no effect with normalization=NoNorm\(\)"),
        ({"final_norm": True}, r"`final_norm` has no effect with normalization=NoNorm\(\)"),
        ({"embedding_norm": True}, "`embedding_norm` has no effect with normalization"),
    ],
)
def test_options_without_effect_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TransformerConfig(**SIZES, **{**BAHDANAU, **options})


def test_a_layer_needs_a_width_unless_it_has_no_feed_forward_network():
    with pytest.raises(ValueError, match=r"`d_ff` has no effect with feed_forward=NoNetwork\(\)"):
        EncoderBlock(num_heads=2, d_ff=F, feed_forward="none")
    with pytest.raises((TypeError, ValueError), match="`d_ff` must be .*None"):
        EncoderBlock(num_heads=2, d_ff=None)
    with pytest.raises(ValueError, match="`query_key_norm` .*NoNorm"):
        EncoderBlock(num_heads=2, d_ff=F, query_key_norm="none")


def test_a_subclass_may_set_the_network_that_its_configuration_lacks():
    class Own(EncoderBlock):
        def __init__(self, **options):
            super().__init__(num_heads=2, d_ff=None, feed_forward="none", **options)
            self.feed_forward = keras.layers.Dense(D + 1)

    block = Own(normalization="none", dropout=0.0, d_k=K, d_v=KV)
    x = normal(B, T, D + 1)
    block(x)
    attended = x + block.self_attention(x)
    expected = attended + block.feed_forward(attended)
    np.testing.assert_allclose(block(x), expected, rtol=0, atol=1e-5)
