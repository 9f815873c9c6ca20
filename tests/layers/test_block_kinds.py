"""Blocks as in other models: norms, gates, shared keys, one table of positions for a stack."""

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from marks import slow
from support import KV, B, D, F, S, T, normal, random_mask, randomise, to_numpy, weights_of

from keras_transformer import Decoder, Encoder, EncoderBlock
from keras_transformer.config.stack import StackConfig
from keras_transformer.layers import (
    AlternatingWindow,
    LinearScaling,
    Llama3Scaling,
    PreNorm,
    Rotary,
    T5Bias,
    YarnScaling,
)

# Keras converts variables to arrays in this way when it saves them.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

LAYER = {"rtol": 0, "atol": 1e-5}
HEADS, SIZE = 4, 6  # heads in two groups; an even size, as rotary positions need
BLOCK = {"num_heads": HEADS, "d_ff": F, "d_k": SIZE, "d_v": KV, "dropout": 0.0}
WAVES = {"factor": 2.0, "short_wave": 9.0, "long_wave": 9.0}
KINDS = {
    "rms": {"normalization": "rms"},
    "norm_without_bias": {"normalization": {"kind": "layer", "offset": False}},
    "gated": {"feed_forward": "gated", "activation": "silu"},
    "gelu_tanh": {"activation": "gelu_tanh"},
    "grouped": {"num_key_value_heads": 2},
    "one_key_head": {"num_key_value_heads": 1, "score": "general"},
    "layer_scale": {"layer_scale": 0.5},
    "no_key_bias": {"attention_bias": ("query", "value", "output")},
    "no_output_bias": {"attention_bias": ("query", "key", "value")},
    "base": {"position": {"kind": "rotary", "base": 50.0}},
    "slower": {"position": Rotary(50.0, LinearScaling(2.0))},
    "long_waves_slower": {
        "position": Rotary(50.0, Llama3Scaling(4.0, 10.0, 50.0)),
    },
    "yarn": {
        "position": Rotary(50.0, YarnScaling(4.0, 7.0, 200.0, scale=1.25)),
    },
    "heads_of_norm_1": {"query_key_norm": "rms", "num_key_value_heads": 2, "position": "rotary"},
    "heads_with_layer_norm": {"query_key_norm": "layer", "score": "general"},
    "grouped_relative": {"num_key_value_heads": 2, "position": {"kind": "relative", "distance": 3}},
    "t5": {
        "position": T5Bias(9, 8, shared=True),
        "score": "dot_product",
        "normalization": "rms",
        "feed_forward": {"kind": "gated", "bias": False},
        "activation": "gelu_tanh",
    },
    "window": {"window": 2},
    "modernbert": {
        "position": Rotary(500.0),
        "window": AlternatingWindow(2, 2, Rotary(20.0)),
        "embedding_norm": True,
        "normalization": {"kind": "layer", "offset": False},
        "feed_forward": {"kind": "gated", "bias": False},
        "activation": "gelu",
    },
    "llama": {
        "position": Rotary(500.0),
        "num_key_value_heads": 2,
        "normalization": "rms",
        "feed_forward": {"kind": "gated", "bias": False},
        "activation": "silu",
    },
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def built(layer_class, kind, norm, *shapes, **arguments):
    layer = layer_class(**arguments, **BLOCK, **KINDS[kind], norm=norm)
    layer.build(*shapes)
    return randomise(layer), weights_of(layer)


def options_of(kind, norm):
    """Returns the arguments for the reference's blocks and stacks."""
    config = StackConfig.from_flat(**BLOCK, **KINDS[kind])
    return {
        "norm": norm,
        "embedding_norm": config.embedding_norm,
        "activation": config.block.activation,
        "kind": config,
    }


@pytest.mark.parametrize(
    ("norm", "kind"),
    [
        slow("post", "rms"),
        slow("post", "gated"),
        slow("post", "one_key_head"),
        ("post", "no_output_bias"),
        slow("post", "base"),
        slow("post", "long_waves_slower"),
        slow("post", "heads_with_layer_norm"),
        ("post", "t5"),
        slow("post", "window"),
        slow("post", "layer_scale"),
        slow("pre", "norm_without_bias"),
        ("pre", "gelu_tanh"),
        slow("pre", "grouped"),
        slow("pre", "no_key_bias"),
        ("pre", "layer_scale"),
        slow("pre", "slower"),
        ("pre", "yarn"),
        slow("pre", "heads_of_norm_1"),
        slow("pre", "grouped_relative"),
        slow("pre", "modernbert"),
        ("pre", "llama"),
    ],
)
def test_an_encoder_stack(kind, norm):
    encoder, weights = built(Encoder, kind, norm, (B, S, D), num_layers=2)
    scales = [name for name in weights if name.endswith("_scale/scale")]
    assert len(scales) == (4 if kind == "layer_scale" else 0)
    x, mask, record = normal(B, S, D), random_mask(B, 1, S, seed=1), {}
    allowed = np.broadcast_to(mask, (B, S, S))
    options = options_of(kind, norm)
    expected = reference.encoder(weights, x, allowed, 2, HEADS, record=record, **options)
    out, attended = encoder(x, attention_mask=mask, return_attention_scores=True)
    np.testing.assert_allclose(out, expected, **LAYER)
    for n in range(2):
        expected = record[f"block_{n}"]["self_attention"]
        np.testing.assert_allclose(attended[f"block_{n}/self_attention"], expected, **LAYER)
    np.testing.assert_array_equal(encoder(x, attention_mask=mask), out)


@pytest.mark.parametrize(
    ("norm", "kind"),
    [
        slow("post", "grouped"),
        slow("post", "heads_of_norm_1"),
        slow("post", "grouped_relative"),
        slow("post", "window"),
        slow("pre", "t5"),
        slow("pre", "modernbert"),
        slow("pre", "layer_scale"),
        ("pre", "llama"),
    ],
)
def test_a_decoder_stack_and_its_steps(kind, norm):
    """Compares whole sequences with the reference, and single positions with a cache."""
    decoder, weights = built(Decoder, kind, norm, (B, T, D), (B, S, D), num_layers=2)
    x, memory = normal(B, T, D), normal(B, S, D, seed=1)
    memory_allowed = random_mask(B, 1, S, seed=3)
    seen = np.ones((B, T, T), bool), np.broadcast_to(memory_allowed, (B, T, S))
    options = options_of(kind, norm)
    expected = reference.decoder(weights, x, memory, *seen, 2, HEADS, **options)
    out = decoder(x, memory, memory_attention_mask=memory_allowed)
    np.testing.assert_allclose(out, expected, **LAYER)
    cache, heads = decoder.empty_cache(B, T), decoder.project_memory(tf.constant(memory))
    groups = KINDS[kind].get("num_key_value_heads", HEADS)
    assert [tensor.shape for tensor in cache[0]] == [(B, groups, T, SIZE), (B, groups, T, KV)]
    for index in range(T):
        step = decoder.step(x[:, index : index + 1], cache, index, heads, memory_allowed)
        np.testing.assert_allclose(step.x[:, 0], out[:, index], **LAYER)
        assert step.weights is None
        cache = step.cache


@pytest.mark.parametrize(
    ("width", "kind"), [slow(3, "grouped_relative"), slow(3, "t5"), slow(3, "window"), (3, "llama")]
)
def test_a_cache_in_two_parts(kind, width):
    """Several hypotheses share a cache, each with a mask of its own entries."""
    decoder, _ = built(Decoder, kind, "pre", (B, T, D), (B, S, D), num_layers=2)
    x, memory = normal(B, width, T, D), tf.constant(normal(B, S, D, seed=1))
    out = [decoder(x[:, number], memory) for number in range(width)]
    heads, cache = decoder.project_memory(memory), decoder.empty_cache(B, 4, width)
    own = np.eye(width, dtype=bool)[:, None]  # [N, 1, N]
    for index in range(T):
        if index == 4:
            cache = decoder.extended_cache(cache, T - 4, width)
        places = np.arange(4 if index < 4 else T) <= index  # [L]
        allowed = (own & places[:, None]).reshape(1, width, -1)
        step = decoder.step(x[:, :, index], cache, index, heads, attention_mask=allowed)
        for number in range(width):
            np.testing.assert_allclose(step.x[:, number], out[number][:, index], **LAYER)
        cache = step.cache


def test_a_cache_for_other_hypotheses_is_refused():
    decoder, _ = built(Decoder, "llama", "pre", (B, T, D), (B, S, D), num_layers=1)
    heads = decoder.project_memory(tf.constant(normal(B, S, D)))
    cache = decoder.extended_cache(decoder.empty_cache(B, 6, 3), 6, 1)
    message = "a multiple of the 3 hypotheses .* a cache of 24 and a mask of 36 entries"
    with pytest.raises(ValueError, match=message):
        decoder.step(normal(B, 3, D), cache, 6, heads, attention_mask=np.ones((B, 3, 36), bool))


@pytest.mark.parametrize("kind", ["t5", "llama"])
def test_under_every_policy(policy, kind):
    encoder, _ = built(Encoder, kind, "pre", (B, S, D), num_layers=2)
    x = tf.constant(normal(B, S, D))
    with tf.GradientTape() as tape:
        out = encoder(x, training=True)
        loss = tf.reduce_mean(tf.cast(out, "float32") ** 2)
    assert out.dtype == policy.compute_dtype
    for gradient in tape.gradient(loss, encoder.trainable_variables):
        assert np.all(np.isfinite(to_numpy(tf.convert_to_tensor(gradient))))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["t5", "llama"])
def test_compiled(kind):
    decoder, _ = built(Decoder, kind, "pre", (B, T, D), (B, S, D), num_layers=2)
    x, memory = normal(B, T, D), normal(B, S, D, seed=1)
    compiled = tf.function(decoder, jit_compile=True)
    np.testing.assert_allclose(compiled(x, memory), decoder(x, memory), **LAYER)


@pytest.mark.parametrize("kind", ["slower", slow("t5"), slow("modernbert"), "llama"])
def test_saved_and_loaded(kind, tmp_path):
    inputs = keras.Input((None, D))
    model = keras.Model(inputs, Encoder(2, **BLOCK, **KINDS[kind])(inputs))
    randomise(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.count_params() == model.count_params()
    np.testing.assert_array_equal(loaded(normal(B, S, D)), model(normal(B, S, D)))


def test_a_first_block_without_its_first_norm():
    """As in ModernBERT, whose embeddings are normalised instead."""
    options = {"norm": PreNorm(first=False), "embedding_norm": True}
    encoder = Encoder(2, **BLOCK, **options)
    encoder.build((B, S, D))
    weights = weights_of(randomise(encoder))
    norms = [name for name in weights if name.endswith("self_attention_norm/gamma")]
    assert norms == ["block_1/self_attention_norm/gamma"]
    x, allowed = normal(B, S, D), np.ones((B, S, S), bool)
    expected = reference.encoder(weights, x, allowed, 2, HEADS, norm="pre", embedding_norm=True)
    np.testing.assert_allclose(encoder(x), expected, **LAYER)
    again = Encoder.from_config(encoder.get_config())
    assert again.config == encoder.config


def test_a_shared_table_is_one_weight():
    _, weights = built(Encoder, "t5", "pre", (B, S, D), num_layers=3)
    tables = [name for name in weights if name.endswith("distance_bias")]
    assert tables == ["block_0/self_attention/distance_bias"]


def test_grouped_keys_equal_repeated_heads():
    """Copying the key and value heads of each group for every head gives the same output."""
    grouped, weights = built(EncoderBlock, "grouped", "post", (B, S, D))
    whole = EncoderBlock(**BLOCK)
    whole.build((B, S, D))
    for weight in whole.weights:
        name = weight.path.removeprefix(whole.name + "/")
        value = weights[name]
        if value.shape != weight.shape:
            heads = value.reshape(D, 2, -1)  # [D, G, K]
            value = np.repeat(heads, 2, axis=1).reshape(D, -1)
        weight.assign(value)
    np.testing.assert_allclose(grouped(normal(B, S, D)), whole(normal(B, S, D)), **LAYER)


ALTERNATING = {"kind": "alternating", "size": 2}


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"num_key_value_heads": 3},
            "`num_heads` must be divisible by .*=4, num_key_value_heads=3",
        ),
        (
            {"num_key_value_heads": 2, "score": "additive"},
            "`num_key_value_heads` must be None with",
        ),
        ({"num_key_value_heads": 0}, "`num_key_value_heads` must be at least 1"),
        ({"normalization": "batch"}, "`normalization` must be one of layer, none, rms, scale"),
        (
            {"normalization": {"kind": "rms", "offset": False}},
            ".* 'rms' has the options epsilon",
        ),
        ({"feed_forward": "glu"}, "`feed_forward` must be one of gated, none, plain"),
        ({"position": {"kind": "rotary", "base": 0.0}}, "`position`: `base` must be above 0"),
        (
            {"position": {"kind": "rotary", "factor": 2.0}},
            "`position` of the kind 'rotary' has the options base, .*Received: factor",
        ),
        (
            {"position": {"kind": "rotary", "scaling": {"kind": "llama3", "factor": 2.0}}},
            "`position`: `scaling` of the kind 'llama3' needs .*Missing: short_wave, long_wave",
        ),
        (
            {"position": {"kind": "rotary", "scaling": {"kind": "yarn", **WAVES}}},
            "`position`: `scaling`: `short_wave` must be below `long_wave`. .*=9.0, long_wave=9.0",
        ),
        ({"query_key_norm": "batch"}, "`query_key_norm` must be one of layer, none, rms, scale"),
        (
            {"position": {"kind": "alibi", "shared": True}},
            ".* 'alibi' has no options",
        ),
        ({"window": 0}, "`window`: `size` must be at least 1"),
        ({"window": "wide"}, "`window` must be one of alternating, local, a table"),
        (
            {"window": {"size": 2, "global_every": 3}},
            "`window` of the kind 'local' has the options",
        ),
        ({"window": {"kind": "alternating", "size": 2}}, "`window` .* Missing: global_every"),
        (
            {"window": {"kind": "alternating", "size": 2, "global_every": 1}},
            "`window`: `global_every` must be at least 2",
        ),
        (
            {
                "window": {
                    "kind": "alternating",
                    "size": 2,
                    "global_every": 2,
                    "position": "learned",
                }
            },
            "`window`: `position` .* must act in self-attention",
        ),
        ({"norm": {"kind": "post", "first": False}}, "`norm` of the kind 'post' has no options"),
        (
            {"attention_bias": ["no"]},
            "`attention_bias` must be True, False or a list of query",
        ),
    ],
    ids=str,
)
def test_wrong_arguments_are_reported_in_one_line(changes, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}") as error:
        Decoder(**{"num_layers": 2, **BLOCK, **changes})
    assert "\n" not in str(error.value)
