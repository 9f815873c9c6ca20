"""A new kind of a part of a block is one module: found by its kind wherever a kind can be given."""

import json

import keras
import numpy as np
import pytest
import reference
from marks import slow_except
from searching import by_greedy
from support import D, F, H, S, T, normal, randomise, sentences, small_config, to_numpy

import keras_transformer as kt
from keras_transformer.arguments import option
from keras_transformer.plugins import import_plugins
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.variants import declared, short

SAME = {"rtol": 0, "atol": 1e-5}
IMPORTS = """
from keras_transformer.arguments import option
from keras_transformer.lazy_keras import keras, ops
from keras_transformer.variants import declared
"""
POSITION = """
from keras_transformer.positions import Position, distances


@declared
class Slope(Position):
    kind = "tests_slope"
    is_relative = True

    slope: float = option(0.5, "Number by which a distance is multiplied.")

    def bias(self, attention, heads, queries, keys):
        far = ops.abs(ops.cast(distances(queries, keys), "float32"))
        return ops.expand_dims(-self.slope * far, axis=0)
"""
NORM = """
from keras_transformer.norms import Norm


@declared
class Softer(Norm):
    kind = "tests_softer"

    least: float = option(0.1, "Smallest mean square.")

    def layer(self, policy, name):
        return keras.layers.RMSNormalization(epsilon=self.least, dtype=policy, name=name)
"""
NETWORK = """
from keras_transformer.feed_forwards import Network


@declared
class Deep(Network):
    kind = "tests_deep"

    count: int = option(1, "Number of hidden layers after the first one.")

    def build(self, layer, width):
        layer.add_dense("inner", layer.d_ff, width, activated=True)
        for number in range(self.count):
            layer.add_dense(f"hidden_{number}", layer.d_ff, layer.d_ff, activated=True)
        layer.add_dense("outer", width, layer.d_ff)

    def call(self, layer, x, training=None):
        x = layer.project(layer.inner, x)
        for number in range(self.count):
            x = layer.project(getattr(layer, f"hidden_{number}"), x)
        return layer.project(layer.outer, layer.drop(x, training))
"""
MIXER = """
from keras_transformer.mixers import Mixer


@declared
class Decay(Mixer):
    kind = "tests_decay"
    is_causal = True

    rate: float = option(0.5, "Share of the sum that a position keeps of the one before it.")

    def call(self, layer, x, real=None):
        state, states = ops.zeros_like(x[:, 0]), []
        for place in range(x.shape[1]):
            state = self.rate * state + x[:, place]
            states.append(state)
        return ops.stack(states, axis=1)

    def state_shapes(self, width):
        return ((width,),)

    def step(self, layer, x, state, index):
        state = self.rate * state[0] + x
        return state, (state,)
"""
# The option, the module, and a value in TOML and in Python.
KINDS = {
    "position": (POSITION, {"kind": "tests_slope", "slope": 0.75}, "Slope(slope=0.75)"),
    "normalization": (NORM, {"kind": "tests_softer", "least": 0.5}, "Softer(least=0.5)"),
    "feed_forward": (NETWORK, {"kind": "tests_deep", "count": 2}, "Deep(count=2)"),
    "mixer": (MIXER, {"kind": "tests_decay", "rate": 0.25}, "Decay(rate=0.25)"),
}


@pytest.fixture(params=KINDS)
def new(request, tmp_path, monkeypatch):
    """The option, and a value of a new kind as a table and as text."""
    module, table, text = KINDS[request.param]
    name = table["kind"]
    (tmp_path / f"{name}.py").write_text(IMPORTS + module)
    monkeypatch.syspath_prepend(tmp_path)
    import_plugins([name], warn=print)
    return request.param, table, text


def logits_of(model):
    return lambda source, target: model({"source": source, "target": target}, training=False)


def causal_block(**options):
    return kt.EncoderBlock(causal=True, **options)


def test_blocks_take_and_save_it(new):
    option, table, text = new
    x, memory = normal(2, T, D), normal(2, S, D, seed=1)
    for make, values in ((causal_block, (x,)), (kt.DecoderBlock, (x, memory))):
        heads = {"num_heads": H, "d_k": 6, "d_v": 5}
        is_attention = option != "mixer" or make is kt.DecoderBlock
        own = heads if is_attention else {"num_heads": None}
        block = make(d_ff=F, **own, dropout=0.0, **{option: table})
        block(*values)
        expected = to_numpy(randomise(block)(*values))
        plain = make(d_ff=F, **heads, dropout=0.0)
        plain(*values)
        assert np.abs(expected - to_numpy(randomise(plain)(*values))).max() > 1e-3
        again = type(block).from_config(json.loads(json.dumps(block.get_config())))
        again(*values)
        again.set_weights(block.get_weights())
        np.testing.assert_allclose(again(*values), expected, **SAME)


@pytest.mark.parametrize("new", slow_except(KINDS, "feed_forward"), indirect=True)
def test_models_and_files_take_and_save_it(new, tmp_path):
    option, table, text = new
    key = next(key for key in table if key != "kind")
    written = f'{{ kind = "{table["kind"]}", {key} = {table[key]} }}'
    path = tmp_path / "own.toml"
    place = "model.decoder" if option == "mixer" else "model"  # encoders are not causal
    path.write_text(f'[data]\nsource = "cldr"\n[{place}]\n{option} = {written}\n')
    value = load_settings(path).config().decoder.to_flat()[option]
    assert repr(value) == text and short(value) == table
    model = randomise(kt.Transformer(small_config(decoder={option: value})))
    inputs = {"source": sentences([13, 6]), "target": sentences([7, 5], first=2)}
    expected = to_numpy(model(inputs))
    tokens, scores = by_greedy(model, inputs["source"], 6)
    wanted = reference.greedy(logits_of(model), inputs["source"], 6, 2, 3, 0)
    np.testing.assert_array_equal(tokens, wanted[0])
    np.testing.assert_allclose(scores, wanted[1], rtol=0, atol=1e-4)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.config == model.config
    np.testing.assert_allclose(loaded(inputs), expected, **SAME)


def test_attention_is_a_value_of_the_block_and_of_its_layer():
    value = kt.layers.SelfAttention(num_heads=4, num_key_value_heads=2, window=3, dropout=0.2)
    block = kt.EncoderBlock(None, F, mixer=value)
    block.build((None, None, 16))
    assert block.self_attention.options is block.config.mixer is value
    short = kt.EncoderBlock(4, F, num_key_value_heads=2, window=3, attention_dropout=0.2)
    assert short.config == block.config
    table = {"num_key_value_heads": 2, "window": 3, "dropout": 0.2}
    options = {"mixer": table, "cross_attention": {"num_heads": 2}, "d_k": None, "d_v": None}
    config = small_config(num_heads=4, d_model=20, **options)
    assert config.encoder.block.mixer == config.decoder.block.mixer == value
    cross = config.decoder.block.memory_attention
    assert (cross.num_heads, cross.num_key_value_heads, cross.dropout) == (2, 2, 0.2)
    assert kt.TransformerConfig(**config.to_flat()) == config
    assert kt.TransformerConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    for layer, other in (
        (kt.layers.MultiHeadSelfAttention, kt.layers.CrossAttention(num_heads=4)),
        (kt.layers.MultiHeadCrossAttention, value),
    ):
        with pytest.raises(TypeError, match="`num_heads` must be an integer or a `[SC]"):
            layer(other)


def test_a_layer_keeps_a_self_attention_of_your_own():
    @declared
    class Labelled(kt.layers.SelfAttention):
        kind = "labelled_attention"
        label: str = option("none", "A label.")

    value = Labelled(num_heads=4, window=2, label="own")
    layer = kt.layers.MultiHeadSelfAttention(value)
    assert kt.layers.MultiHeadSelfAttention.from_config(layer.get_config()).options == value
    config = kt.TransformerConfig(mixer=value)
    assert kt.TransformerConfig(**config.to_flat()) == config
