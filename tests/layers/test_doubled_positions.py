"""Positions without effect are refused, and two kinds of them do not go unnoticed."""

import warnings

import keras
import numpy as np
import pytest
from marks import slow
from support import D, F, H, T, normal, randomise, small_config, to_numpy

import keras_transformer as kt
from keras_transformer.positions import distances

IDS = np.array([[4, 7, 2, 9, 0]])
SIZES = {"d_k": 6, "d_v": 5, "dropout": 0.0}
DOUBLED = "has Rotary positions, and its input already has Sinusoidal positions"


LANGUAGE_MODEL = {
    **{
        "vocab_size": 19,
        "num_layers": 1,
        "d_model": D,
        "num_heads": H,
        "d_ff": F,
        "d_k": 6,
        "d_v": 5,
    }
}


class Everywhere(kt.layers.Position):
    """Adds a number to embeddings, and to the scores of distant keys."""

    kind = "tests_everywhere"

    def __init__(self, slope=1.0):
        self.slope = slope

    def embed(self, embedding, start, tokens):
        return self.slope * keras.ops.ones((1, embedding.d_model))

    def bias(self, attention, heads, queries, keys):
        near = keras.ops.abs(distances(queries, keys))
        return -self.slope * keras.ops.cast(near, "float32")[None]

    def get_config(self):
        return {"slope": self.slope}


def block(**options):
    return kt.EncoderBlock(H, F, **SIZES, **options)


class Subclassed(keras.Model):
    def __init__(self, embedding, layer):
        super().__init__()
        self.embedding, self.layer = embedding, layer

    def call(self, tokens, training=None):
        return self.layer(self.embedding(tokens))


def functional(embedding, layer):
    tokens = keras.Input((None,), dtype="int32")
    return keras.Model(tokens, layer(embedding(tokens)))


BUILD = {
    "functional": lambda *layers: functional(*layers),
    "subclassed": lambda *layers: Subclassed(*layers)(IDS),
    "fitted": lambda *layers: Subclassed(*layers).predict(IDS, verbose=0),
}
LAYERS = {"block": block, "stack": lambda **o: kt.Encoder(2, H, F, **SIZES, **o)}


@pytest.mark.parametrize(
    ("layer", "way"), [("block", "subclassed"), ("stack", "functional"), ("stack", "fitted")]
)
def test_two_kinds_of_positions_give_a_warning(layer, way):
    with pytest.warns(UserWarning, match=DOUBLED):
        BUILD[way](kt.PositionalEmbedding(19, D), LAYERS[layer](position="rotary"))


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize(
    "position, options",
    [
        ("sinusoidal", {}),
        slow("none", {"position": "rotary"}),
        ("learned", {"attention_position": "t5"}),  # both are intended, as in MPNet
    ],
)
def test_one_kind_or_two_intended_ones_give_none(layer, position, options):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The self-attention of")
        BUILD["fitted"](kt.PositionalEmbedding(19, D, position=position), LAYERS[layer](**options))


@pytest.mark.parametrize("position", ["sinusoidal", "rotary", "alibi"])
def test_whole_models_give_none(position):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The self-attention of")
        model = kt.Transformer(small_config(position=position, d_k=6))
        model({"source": IDS, "target": IDS})


def test_a_block_on_keras_embedding_has_no_positions_unless_it_states_them():
    """The default is honest: "none" in the signature, and a permuted input is a permuted output."""
    x = normal(2, T, D)
    order = np.random.default_rng(0).permutation(T)
    plain, alibi = block(), block(position="alibi")
    for layer in (plain, alibi):
        layer(x)
        randomise(layer)
    assert plain.get_config()["position"] == "none"
    difference = to_numpy(plain(x))[:, order] - to_numpy(plain(x[:, order]))
    assert np.abs(difference).max() < 1e-5
    assert np.abs(to_numpy(alibi(x))[:, order] - to_numpy(alibi(x[:, order]))).max() > 1e-3


def test_one_position_may_act_on_embeddings_and_in_attention():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The self-attention of")
        for position in (Everywhere(), "tests_everywhere"):
            model = kt.LanguageModel(
                kt.models.LanguageModelConfig(**LANGUAGE_MODEL, position=position)
            )
            model(IDS)
    with pytest.warns(UserWarning, match="has Everywhere positions, and its input already has Eve"):
        block(position=Everywhere(2.0))(kt.PositionalEmbedding(19, D, position=Everywhere())(IDS))
