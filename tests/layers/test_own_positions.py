"""Positions and scores of users: objects and registered names, wherever one can be given."""

import functools
import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from keras import ops
from marks import slow
from searching import by_beam, by_greedy
from support import D, F, H, S, T, normal, randomise, sentences, small_config, to_numpy

import keras_transformer as kt
from keras_transformer.mixers import SelfAttention
from keras_transformer.positions import distances
from keras_transformer.tasks.run import Run
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.variants import KINDS, plain

SAME = {"rtol": 0, "atol": 1e-5}


class Near(kt.layers.Position):
    """A learned bias for each head and distance up to `farthest`."""

    kind = "tests_near"

    def __init__(self, farthest=3, shared=False):
        self.farthest, self.shared = farthest, shared

    def build_attention(self, attention):
        attention.near = attention.add_weight(
            shape=(2 * self.farthest + 1, attention.num_heads), name="near"
        )

    def bias(self, attention, heads, queries, keys):
        far = ops.clip(distances(queries, keys), -self.farthest, self.farthest) + self.farthest
        return ops.moveaxis(ops.take(attention.near, ops.cast(far, "int32"), axis=0), -1, 0)

    def get_config(self):
        return {"farthest": self.farthest, "shared": self.shared}


class Ramp(kt.layers.Position):
    """Adds the position itself to every feature of an embedding."""

    kind = "tests_ramp"

    def embed(self, embedding, start, tokens):
        places = ops.cast(start, "float32") + ops.arange(ops.shape(tokens)[1], dtype="float32")
        return 0.1 * ops.expand_dims(places, axis=1) + ops.zeros((1, embedding.d_model))


class Distance(kt.layers.AttentionScore):
    """The negative squared distance of query and key."""

    kind = "tests_distance"
    is_product = True

    def __init__(self, slope=0.5):
        self.slope = slope

    def compare(self, attention, query, key):
        far = ops.expand_dims(query, 3) - ops.expand_dims(key, 2)  # [B, H, T, S, K]
        return -self.slope * ops.sum(far * far, axis=-1)

    def get_config(self):
        return {"slope": self.slope}


class Both(Near):
    """The biases of other positions, times numbers that an initializer makes."""

    kind = "tests_both"

    def __init__(self, of_others=(), start="ones", names=None):
        self.of_others, self.start, self.names = of_others, start, names or {}

    def build_attention(self, attention):
        for position in self.of_others:
            position.build_attention(attention)
        shape = (len(self.of_others),)
        attention.parts = attention.add_weight(shape=shape, initializer=self.start, name="parts")

    def bias(self, attention, heads, queries, keys):
        biases = [each.bias(attention, heads, queries, keys) for each in self.of_others]
        return sum(attention.parts[n] * bias for n, bias in enumerate(biases))

    def get_config(self):
        return {"of_others": self.of_others, "start": self.start, "names": self.names}


class Unregistered(Near):
    """Cannot be saved."""


POSITIONS = {
    "object": Near(2),
    "name": "tests_near",
    "built-in object": kt.layers.Rotary(base=500.0),
    "built-in name": "alibi",
}
SCORES = {
    "object": Distance(0.25),
    "name": "tests_distance",
    "built-in object": kt.layers.Additive(),
}
LAYERS = {
    "EncoderBlock": (lambda **o: kt.EncoderBlock(H, F, d_k=6, d_v=5, dropout=0.0, **o), 1),
    "DecoderBlock": (lambda **o: kt.DecoderBlock(H, F, d_k=6, d_v=5, dropout=0.0, **o), 2),
    "Encoder": (lambda **o: kt.Encoder(2, H, F, d_k=6, d_v=5, dropout=0.0, **o), 1),
    "Decoder": (lambda **o: kt.Decoder(2, H, F, d_k=6, d_v=5, dropout=0.0, **o), 2),
}


@pytest.mark.parametrize(
    ("layer", "options"),
    [
        ("Decoder", {"position": POSITIONS["object"]}),
        slow("Encoder", {"position": POSITIONS["name"]}),
        slow("DecoderBlock", {"position": POSITIONS["built-in object"]}),
        ("EncoderBlock", {"position": POSITIONS["built-in name"]}),
        slow("Encoder", {"score": SCORES["object"]}),
        ("DecoderBlock", {"score": SCORES["name"]}),
        slow("Decoder", {"score": SCORES["built-in object"]}),
    ],
    ids=str,
)
def test_layers_take_and_save_objects_and_names(layer, options):
    make, inputs = LAYERS[layer]
    values = [normal(2, T, D), normal(2, S, D, seed=1)][:inputs]
    layer = make(**options)
    expected = to_numpy(randomise_after(layer, values))
    plain = make()
    plain(*values)
    different = randomise(plain)(*values)
    assert np.abs(expected - to_numpy(different)).max() > 1e-3  # it has an effect
    config = json.loads(json.dumps(layer.get_config()))
    again = type(layer).from_config(config)
    again(*values)
    again.set_weights(layer.get_weights())
    np.testing.assert_allclose(again(*values), expected, **SAME)


def randomise_after(layer, values):
    layer(*values)
    return randomise(layer)(*values)


@pytest.fixture(scope="module")
def own_model():
    return randomise(kt.Transformer(small_config(position=Near(2), score="tests_distance")))


def logits_of(model):
    return lambda source, target: model({"source": source, "target": target}, training=False)


@pytest.mark.slow
def test_greedy_search_with_an_own_position_and_score_equals_the_search_without_a_cache(own_model):
    source = sentences([S, 5, 1], seed=3)
    tokens, scores = by_greedy(own_model, source, 6)
    expected = reference.greedy(logits_of(own_model), source, 6, 2, 3, 0)
    np.testing.assert_array_equal(tokens, expected[0])
    np.testing.assert_allclose(scores, expected[1], rtol=0, atol=1e-4)


@pytest.mark.slow
def test_a_beam_with_an_own_position_and_score_equals_the_search_without_a_cache(own_model):
    source, size, limit = sentences([7, 3], seed=3), 3, 6
    tokens, scores = by_beam(
        own_model, source, size, size, max_length=limit, normalization="average"
    )
    normalize = functools.partial(reference.normalized, normalization="average", length_penalty=0)
    for row, line in enumerate(source):
        expected = reference.beam(logits_of(own_model), line, size, normalize, 1, limit, 2, 3, 0)
        for place, (score, wanted) in enumerate(expected[:size]):
            padded = [*wanted, *[0] * (limit - len(wanted))]
            np.testing.assert_array_equal(tokens[row, place], padded)
            np.testing.assert_allclose(scores[row, place], score, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "changes", [{"position": Near(2), "score": Distance()}, slow({"position": Ramp()})]
)
def test_models_are_saved_with_their_objects(changes, tmp_path):
    model = randomise(kt.Transformer(small_config(**changes)))
    inputs = {"source": sentences([13, 6]), "target": sentences([7, 5], first=2)}
    expected = to_numpy(model(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.config == model.config
    assert hash(loaded.config) == hash(model.config)
    np.testing.assert_allclose(loaded(inputs), expected, **SAME)


def test_a_position_that_holds_positions_and_objects_of_keras_is_restored(tmp_path):
    start = keras.initializers.RandomUniform(0.5, 1.5, seed=3)
    position = Both([Near(2), kt.layers.Alibi()], start)
    model = randomise(kt.Transformer(small_config(position=position)))
    inputs = {"source": sentences([13, 6]), "target": sentences([7, 5], first=2)}
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again(inputs), to_numpy(model(inputs)), **SAME)
    copy = again.config.encoder.position
    assert copy == position and hash(copy) == hash(position)
    assert copy.start.get_config() == start.get_config() and type(copy.start) is type(start)
    assert copy != Both(position.of_others, keras.initializers.RandomUniform(0.5, 1.4, seed=3))


def test_nests_of_positions_are_restored_and_other_dictionaries_are_left_alone():
    names = {"class_name": "mine", "config": {"near": Near(5)}}
    position = Both([Both([Near(1)], keras.initializers.Zeros())], names=names)
    content = json.loads(json.dumps(plain(position)))
    again = kt.layers.Position.make(content)
    assert again == position and again != Both([Both([Near(2)])], names=names)
    assert again.of_others[0].of_others == [Near(1)] and again.names == names


class Rates(kt.layers.Rotary):
    """A position whose configuration holds a list."""

    kind = "tests_rates"

    def get_config(self):
        return {**super().get_config(), "rates": [1.0, 2.0]}

    def __init__(self, *args, rates=(), **kwargs):
        super().__init__(*args, **kwargs)


def test_a_rotary_position_with_a_list_in_its_configuration_works_in_a_graph():
    block = kt.EncoderBlock(num_heads=2, d_ff=8, position=Rates(max_length=9))
    x = np.random.default_rng(1).normal(size=(1, 5, 8)).astype("float32")
    graph = tf.function(block, autograph=False)
    np.testing.assert_allclose(graph(tf.constant(x)), block(x), atol=1e-6)


def test_a_position_acts_where_it_can():
    near, ramp = (kt.Transformer(small_config(position=position)) for position in (Near(), Ramp()))
    paths = [weight.path for weight in near.weights]
    assert sum(path.endswith("self_attention/near") for path in paths) == 3  # one for each block
    assert type(near.encoder.blocks[0].self_attention.position) is Near
    assert type(near.input_embedding.position) is kt.layers.Position
    assert type(ramp.encoder.blocks[0].self_attention.position) is kt.layers.Position
    assert type(ramp.input_embedding.position) is Ramp
    both = kt.Transformer(small_config(position=Ramp(), attention_position=Near(2)))
    assert type(both.input_embedding.position) is Ramp
    assert both.decoder.blocks[1].self_attention.position == Near(2)


def test_blocks_share_the_weights_of_an_own_position():
    encoder = kt.Encoder(3, H, F, d_k=6, d_v=5, position=Near(2, shared=True))
    encoder(normal(2, T, D))
    assert sum(weight.path.endswith("/near") for weight in encoder.weights) == 1


def test_a_run_names_a_kind_whose_module_is_not_imported(tmp_path, monkeypatch):
    kt.Transformer(small_config(position=Near(2))).save(tmp_path / "model.keras")
    monkeypatch.delitem(KINDS["position"], "tests_near")
    with pytest.raises(
        ValueError, match="model.keras: `position` must be .*with --module,"
    ) as error:
        Run(tmp_path).load_model()
    assert "tests_near" in str(error.value) and "\n" not in str(error.value)


def test_presets_and_one_stack_take_objects():
    config = kt.TransformerConfig.preset("tiny", decoder={"position": Near(2)}, vocab_size=19)
    assert config.decoder.position == Near(2)
    assert config.encoder.position == kt.layers.Sinusoidal()
    assert kt.TransformerConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_a_registered_name_in_a_file_of_settings(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(
        '[data]\nsource = "cldr"\n[model]\nposition = "tests_near"\nscore = "tests_distance"\n'
    )
    settings = load_settings(path)
    assert settings.model.options() == {"position": "tests_near", "score": "tests_distance"}


def test_a_wrong_type_in_a_file_is_an_error_of_one_line(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('[data]\nsource = "cldr"\n[model]\nposition = 3\n')
    with pytest.raises(ValueError, match="`position` must be one of .*Received: position=3"):
        load_settings(path)


def test_values_are_equal_if_class_and_arguments_are():
    assert Near(2) == Near(2) != Near(3)
    assert Near(2) != Unregistered(2)
    assert hash(Near(2)) == hash(Near(2))
    assert kt.layers.Rotary(500) == kt.layers.Rotary(500.0) and hash(kt.layers.Rotary(500)) == hash(
        kt.layers.Rotary(500.0)
    )
    assert repr(Near(2)) == "Near(farthest=2, shared=False)"


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: kt.EncoderBlock(H, F, position="nearest"), "`position` must be one of alibi"),
        (
            lambda: kt.EncoderBlock(H, F, position="tests_far"),
            "For another kind, import ",
        ),
        (
            lambda: kt.EncoderBlock(H, F, position={"base": 2.0}),
            "`position` needs a `kind`",
        ),
        (lambda: kt.EncoderBlock(H, F, score=Near()), "`score` must be one of additive"),
        (lambda: kt.EncoderBlock(H, F, position=Unregistered()), "`position` must be of a class"),
        (lambda: SelfAttention(score=3), "`score` must be one of additive"),
        (lambda: kt.PositionalEmbedding(19, D, position=Near()), "`position` of an embedding must"),
        (lambda: kt.MultiHeadSelfAttention(H, position=Ramp()), '"tests_ramp" is added to emb'),
        (lambda: small_config(position=Near(), decoder="ssru"), "must be added to the embedding"),
        (
            lambda: small_config(position=Near(), attention_position="t5"),
            "`attention_position` must be 'none' unless",
        ),
        (
            lambda: kt.MultiHeadSelfAttention(H, position={"kind": "tests_gone", "near": 3}),
            "must be one of .* import the module that registers it, .*Received: .*'tests_gone'",
        ),
    ],
)
def test_refused_values(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("name", ["sinusoidal", "learned", "binary"])
@pytest.mark.parametrize("make, inputs", LAYERS.values(), ids=LAYERS)
def test_a_block_refuses_positions_of_embeddings(make, inputs, name):
    with pytest.raises(ValueError, match=f'`position` of a block .*, but "{name}" is added to emb'):
        make(position=name)


def test_a_stack_of_a_model_can_be_made_again_from_its_configuration():
    model = kt.Transformer(small_config(position="learned", attention_position="t5"))
    config = model.encoder.get_config()
    assert (config["position"], config["attention_position"]["kind"]) == ("none", "t5")
    again = kt.Encoder.from_config(config)
    assert type(again.blocks[0].position) is kt.layers.T5Bias


def test_values_of_an_option_differ_in_their_kinds():
    with pytest.raises(ValueError, match="`kind` must be unique .*'tests_near', .* of Near"):
        type("Farther", (kt.layers.Position,), {"kind": "tests_near"})
    again = type("Nearest", (kt.layers.Position,), {"kind": "tests_nearest"})
    assert kt.layers.Position.kinds()["tests_nearest"] is again
    later = type("Nearest", (kt.layers.Position,), {"kind": "tests_nearest"})  # as in a notebook
    assert kt.layers.Position.kinds()["tests_nearest"] is later


def test_an_argument_is_not_called_kind():
    class Wrong(kt.layers.Position):
        kind = "tests_wrong"

        def get_config(self):
            return {"kind": 3}

    with pytest.raises(ValueError, match="argument of Wrong must not be called `kind`"):
        plain(Wrong())


def test_reading_a_configuration_imports_neither_keras_nor_numpy():
    code = (
        "import sys; from keras_transformer import TransformerConfig as T; c = T.preset('tiny', "
        "vocab_size=99, position={'kind': 'rotary', 'base': 5e5, 'scaling': {'kind': 'linear', "
        "'factor': 2.0}}); assert T.from_dict(c.to_dict()) == c; "
        "print({'keras', 'tensorflow', 'numpy'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
