"""Positions of every kind: the formula, their effect in a model, and refused arguments."""

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from marks import rows
from searching import by_greedy
from support import B, D, F, H, S, T, normal, randomise, sentences, small_config, weights_of

from keras_transformer import (
    EncoderBlock,
    MultiHeadSelfAttention,
    PositionalEmbedding,
    Transformer,
    TransformerConfig,
)
from keras_transformer.config.stack import StackConfig
from keras_transformer.layers import (
    Learned,
    Position,
    Relative,
    Rotary,
    Sinusoidal,
    T5Bias,
    sinusoids,
)
from keras_transformer.variants import plain

V, K = 19, 6
EVERY = {
    "halves": {"position": Sinusoidal("halves")},
    "endpoint": {"position": Sinusoidal("halves", endpoint=True)},
    "offset": {"position": Sinusoidal(offset=2)},
    "scale": {"embedding_scale": 1.0},
    "learned": {"position": "learned"},
    "rotary": {"position": "rotary", "d_k": K},
    "alibi": {"position": "alibi"},
    "relative": {"position": "relative"},
    "relative, near": {"position": {"kind": "relative", "distance": 2}},
    "t5": {"position": "t5"},
    "t5, near": {"position": {"kind": "t5", "distance": 7, "buckets": 8}},
    "binary": {"position": "binary"},
    "none": {"position": "none"},
}
each_kind = pytest.mark.parametrize("changes", EVERY.values(), ids=EVERY)


@pytest.mark.parametrize("endpoint", [False, True])
@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_sinusoids_of_every_layout(layout, endpoint):
    table = sinusoids(37, D, layout, endpoint)
    np.testing.assert_allclose(table, reference.sinusoids(37, D, layout, endpoint), atol=1e-6)


@pytest.mark.parametrize("length", [1024, 1025, 100_000])
def test_rotations_of_far_positions_are_exact(length):
    """Beyond 1,024 positions two tables are multiplied."""
    places = np.array([0, 1, 1023, *((1024, length - 1) if length > 1024 else ())], "int32")
    base, rates = 500.0, 500.0 ** (-np.arange(K // 2) / (K // 2))
    heads = normal(1, 1, len(places), K)
    points = heads[..., : K // 2] + 1j * heads[..., K // 2 :]
    points = points * np.exp(1j * places[:, None] * rates)
    expected = np.concatenate([points.real, points.imag], axis=-1)
    rotary = Rotary(base, max_length=length)
    found = rotary.rotate(tf.constant(heads, "float32"), places)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    one = rotary.rotate(tf.constant(heads[:, :, -1:], "float32"), places[-1])
    np.testing.assert_allclose(one[:, :, 0], expected[:, :, -1], rtol=0, atol=1e-6)


def test_the_offset_and_the_scale_of_an_embedding():
    tokens = np.random.default_rng(0).integers(0, V, (B, T)).astype("int32")
    layer = PositionalEmbedding(V, D, Sinusoidal("halves", offset=3), scale=2.0)
    layer.build(tokens.shape)
    table = weights_of(randomise(layer))["table"]
    expected = 2 * table[tokens] + reference.sinusoids(T + 3, D, "halves")[3:]
    np.testing.assert_allclose(layer(tokens), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_rotary_attention(causal):
    layer = MultiHeadSelfAttention(H, d_k=K, d_v=5, causal=causal, position="rotary")
    x = normal(B, T, D)
    layer.build(x.shape)
    weights = weights_of(randomise(layer))
    query, key, value = (
        reference.split_heads(reference.dense(reference.scope(weights, name), x), H)
        for name in ("query", "key", "value")
    )
    seen = np.tril(np.ones((T, T), bool)) if causal else np.ones((T, T), bool)
    heads, _ = reference.attention(
        reference.rotated(query), reference.rotated(key), value, np.broadcast_to(seen, (B, T, T))
    )
    joined = heads.reshape(B, T, -1)
    expected = reference.dense(reference.scope(weights, "output"), joined)
    np.testing.assert_allclose(layer(x), expected, rtol=0, atol=1e-5)


def test_rotary_scores_depend_on_distances_only():
    rotary, heads = Rotary(), normal(B, H, T, K)
    near, far = (rotary.rotate(heads, np.arange(T) + first) for first in (0, 200))
    products = [np.einsum("bhtk,bhsk->bhts", x, x) for x in (near, far)]
    np.testing.assert_allclose(*products, rtol=0, atol=1e-4)  # 200 rad of float32 waves
    assert np.abs(np.asarray(near) - np.asarray(far)).max() > 0.5


@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_too_many_rotary_positions_are_never_silently_wrong(jit_compile):
    layer = EncoderBlock(H, F, d_k=K, d_v=5, position="rotary", max_length=7)
    signature = [tf.TensorSpec([None, None, D], tf.float32)]
    function = tf.function(layer, input_signature=signature, jit_compile=jit_compile)
    assert np.isfinite(function(normal(B, 7, D))).all()
    try:
        assert np.isnan(function(normal(B, 8, D))).all()
    except tf.errors.InvalidArgumentError:
        assert not jit_compile  # only the processor's look-up checks the range


@pytest.mark.parametrize("position", ["rotary", "learned"])
def test_a_known_length_beyond_the_limit_is_one_clear_error(position):
    message = f"`max_length` {position} positions must cover .*: max_length=7, 8 positions"
    config = small_config(position=position, d_k=K, d_v=5, max_length=7)
    with pytest.raises(ValueError, match=message):
        Transformer(config)({"source": sentences([8]), "target": sentences([8], first=2)})
    attention = MultiHeadSelfAttention(H, d_k=K, d_v=5, position=Rotary(max_length=7))
    attention(normal(B, 7, D))
    with pytest.raises(ValueError, match="rotary positions must cover"):
        tf.function(attention, input_signature=[tf.TensorSpec([None, 8, D])])(normal(B, 8, D))


@pytest.mark.parametrize("wrong", [V, -1])
def test_ids_outside_the_vocabulary_are_one_clear_error(wrong):
    ids = np.array([[3, wrong, 4]], "int32")
    message = f"must be token ids from 0 to 18: the vocabulary has 19 tokens. .*: {wrong}\\."
    for given in (ids, tf.constant(ids)):
        with pytest.raises(ValueError, match=f"^`inputs` {message}"):
            PositionalEmbedding(V, D)(given)
        model = Transformer(small_config())
        for side in ("source", "target"):
            inputs = {"source": sentences([3]), "target": sentences([3], first=2), side: given}
            with pytest.raises(ValueError, match=f"^`{side}` {message}"):
                model(inputs)


@pytest.mark.parametrize(
    "changes",
    rows(EVERY, ["none"], slow=EVERY),
)
def test_a_step_at_a_time_equals_the_whole_sentence(changes):
    model = randomise(Transformer(small_config(**changes)))
    source, target = sentences([S, 5]), sentences([T, 7], first=2)
    expected = model({"source": source, "target": target})
    memory, allowed = model.encode(source)
    cache, heads = model.start(memory, T)
    for t in range(T):
        logits, cache, _ = model.step(target[:, t : t + 1], cache, t, heads, allowed)
        np.testing.assert_allclose(logits[:, 0], expected[:, t], rtol=0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    rows(EVERY, ["learned", "alibi", "t5", "none"]),
)
def test_it_is_saved_in_a_file(changes, tmp_path):
    model = randomise(Transformer(small_config(**changes)))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    inputs = {"source": sentences([S, 5]), "target": sentences([T, 7], first=2)}
    np.testing.assert_array_equal(loaded(inputs), model(inputs))
    tokens, _ = by_greedy(model, inputs["source"], 9)
    np.testing.assert_array_equal(by_greedy(loaded, inputs["source"], 9)[0], tokens)
    assert loaded.config == model.config


@pytest.mark.parametrize(
    "changes",
    rows(EVERY, ["alibi", "none"], slow=["offset", "rotary", "relative", "t5"]),
)
def test_every_option_has_an_effect(changes):
    inputs = {"source": sentences([S, 5]), "target": sentences([T, 7], first=2)}
    plain = small_config(**{name: value for name, value in changes.items() if name == "d_k"})
    outputs = [
        np.asarray(randomise(Transformer(config))(inputs))
        for config in (plain, small_config(**changes))
    ]
    assert np.abs(outputs[0] - outputs[1]).max() > 0.05


def test_the_names_are_those_of_the_configuration():
    classes = Position.kinds()
    assert all(kind.kind == name for name, kind in classes.items())
    assert {*map(type, (Rotary(), Position()))} < {*classes.values()}
    assert StackConfig().position == TransformerConfig().encoder.position == Sinusoidal()


@pytest.mark.parametrize(
    "position",
    [Sinusoidal("halves", True, 1), Learned(), Relative(5), T5Bias(9, 8), "rotary", "binary"],
)
def test_a_position_is_serialised_with_its_options(position):
    position = Position.make(position)
    again = Position.make(plain(position))
    assert type(again) is type(position) and again.get_config() == position.get_config()


def test_wrong_arguments_are_refused():
    names = "alibi, binary, disentangled, learned, none, relative, rotary, sinusoidal, sinusoidal_g"
    message = rf"`position` must be one of {names}.*, t5, .* or an object.* Received: .*'spiral'"
    with pytest.raises(ValueError, match=message):
        PositionalEmbedding(V, D, position="spiral")
    with pytest.raises(ValueError, match='"rotary" acts in self-attention'):
        PositionalEmbedding(V, D, position="rotary")
    for position in ("sinusoidal", "binary", Learned()):
        message = r"must act in self-attention, but .* is added to embeddings"
        with pytest.raises(ValueError, match=message):
            MultiHeadSelfAttention(H, d_k=K, d_v=5, position=position, name="a")(normal(B, T, D))
    with pytest.raises(ValueError, match=r"`d_k` must be even for rotary .*Received: d_k=5"):
        TransformerConfig(position="rotary", d_k=5)
    with pytest.raises(ValueError, match=r"`d_k` must be even for rotary .*Received: d_k=5"):
        EncoderBlock(H, F, d_k=5, d_v=5, position="rotary")(normal(B, T, D))
    with pytest.raises(ValueError, match="the kind 'learned' has no options. .*offset"):
        TransformerConfig(position={"kind": "learned", "offset": 1})
    with pytest.raises(ValueError, match=r"`offset` must be at least 0. Received: offset=-1"):
        Sinusoidal(offset=-1)
    with pytest.raises(ValueError, match=r"`embedding_scale` must be above 0"):
        TransformerConfig(embedding_scale=0.0)
