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
    to_numpy,
    weights_of,
)

import keras_transformer as kt
from keras_transformer import EncoderBlock, Transformer, TransformerConfig
from keras_transformer.decoding.encoder_decoder import EncoderDecoder
from keras_transformer.layers import PositionReader

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


BYTENET = {
    "mixer": "dilated_convolution",
    "cross_attention": "same_position",
    "feed_forward": "none",
    "normalization": "none",
    "position": "none",
}


def same_position(weights, memory, real, length):
    """Returns the projection of memory at positions 0 to `length - 1`, in loops."""
    out = np.zeros((len(memory), length, weights["value/kernel"].shape[1]))
    for b, t in np.ndindex(len(memory), length):
        if t < memory.shape[1] and real[b, t]:
            out[b, t] = memory[b, t] @ weights["value/kernel"]
    return out


@pytest.mark.parametrize("length", [S - 3, S, S + 2])
def test_the_same_position_of_another_sequence_is_read(length):
    layer, memory = PositionReader(), normal(B, S, D + 1, seed=1)
    x, real = normal(B, length, D), np.arange(S) < S - np.arange(B)[:, None]
    layer.build(x.shape, memory.shape)
    randomise(layer)
    expected = same_position(weights_of(layer), memory, real, length)
    for mask in ({"memory_mask": real}, {"attention_mask": real[:, None]}):
        np.testing.assert_allclose(layer(x, memory, **mask), expected, rtol=0, atol=1e-5)
    heads = layer.project_memory(memory)
    for t in range(length):
        out = layer.step(x[:, t : t + 1], heads, real[:, None], index=t)
        np.testing.assert_allclose(out[:, 0], expected[:, t], rtol=0, atol=1e-5)
    everywhere = same_position(weights_of(layer), memory, np.ones((B, S), bool), length)
    np.testing.assert_allclose(layer(x, memory), everywhere, rtol=0, atol=1e-5)


def test_a_mask_that_depends_on_the_query_is_refused():
    layer = PositionReader()
    with pytest.raises(ValueError, match="`attention_mask` must be the same for every query"):
        layer(normal(B, T, D), normal(B, S, D), attention_mask=np.ones((B, T, S), bool))


def test_a_decoder_on_top_of_the_encoder_reads_its_own_position():
    """A changed word of the source changes the outputs near its place, from there on."""
    config = small_config(**BYTENET, num_layers=1, num_decoder_layers=1)
    model = randomise(Transformer(config))
    source, target = sentences([S, S]), sentences([T, T], first=2)
    source[1] = source[0]
    target[1] = target[0]
    source[1, 5] = source[0, 5] % 17 + 4 if source[0, 5] != source[0, 5] % 17 + 4 else 3
    logits = to_numpy(model({"source": source, "target": target}))
    change = np.abs(logits[0] - logits[1]).max(axis=-1)
    assert change[:4].max() == 0 and change[4] > 1e-4  # the encoder reads one word ahead
    config = TransformerConfig.preset("tiny", **BYTENET)
    assert "num_heads" not in config.to_flat()
    assert TransformerConfig(**config.to_flat()) == config
    assert TransformerConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_same_position_has_no_attention():
    config = small_config(**BYTENET)
    model = Transformer(config)
    inputs = {"source": sentences([S]), "target": sentences([T], first=2)}
    assert not model.attention_weights(inputs)
    with pytest.raises(ValueError, match="`alignment` must be None for a decoder without atten"):
        EncoderDecoder(model, alignment=(0, 0))
    with pytest.raises(ValueError, match="`num_heads` has no effect"):
        TransformerConfig(**BYTENET, num_heads=4)


def test_self_attention_and_same_position_read_a_prompt_at_once(small_model):
    model = small_model(cross_attention="same_position")
    source, target = sentences([S, 5]), sentences([T, T], first=2)
    memory, allowed = model.encode(source)
    cache, heads = model.start(memory, T)
    read = model.read(target, heads, allowed)
    for t in range(T):
        _, cache, _ = model.step(target[:, t : t + 1], cache, t, heads, allowed)
    for (keys, values), (key, value) in zip(cache, read, strict=True):
        np.testing.assert_allclose(keys, key, rtol=0, atol=1e-5)
        np.testing.assert_allclose(values, value, rtol=0, atol=1e-5)
