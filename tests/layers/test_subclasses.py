"""Layers that extend ours, and their arguments as `help` shows them."""

import inspect
import pathlib
import pydoc
import re

import keras
import numpy as np
import pytest
from support import KV, B, D, F, H, K, S, T, normal, random_mask, randomise, to_numpy

import keras_transformer as kt
from keras_transformer.layers.blocks.options import OPTIONS

BLOCK = {"d_k": K, "d_v": KV, "dropout": 0.0}
X, MEMORY = normal(B, T, D), normal(B, S, D, seed=1)


@keras.saving.register_keras_serializable("test_subclasses")
class PassingDecoderBlock(kt.DecoderBlock):
    """A block that passes on all its arguments."""

    def call(self, x, *args, **kwargs):
        return super().call(x, *args, **kwargs)


@keras.saving.register_keras_serializable("test_subclasses")
class PassingEncoderBlock(kt.EncoderBlock):
    def call(self, x, *args, training=None, **kwargs):
        return super().call(x, *args, training=training, **kwargs)


class ByName(kt.EncoderBlock):
    def call(self, x, **kwargs):
        return super().call(x, **kwargs)


class Pooled(kt.EncoderBlock):
    """A block that returns a different shape from ours, and the weights."""

    def call(self, x, *args, **kwargs):
        x, weights = super().call(x, *args, **{**kwargs, "return_attention_scores": True})
        return keras.ops.mean(x, axis=1), weights["self_attention"]


class PooledDecoder(kt.FeedForward):
    def call(self, x, training=None):
        return keras.ops.mean(super().call(x, training=training), axis=1)


def same_weights(layer, other):
    randomise(layer)
    other.set_weights(layer.get_weights())


@pytest.mark.slow
def test_a_decoder_block_that_passes_its_arguments_on(tmp_path):
    allowed, memory_allowed = random_mask(B, 1, T), random_mask(B, 1, S, seed=1)
    layer, own = kt.DecoderBlock(H, F, **BLOCK), PassingDecoderBlock(H, F, **BLOCK)
    calls = [
        ((X, MEMORY), {}),
        ((X, MEMORY, allowed, memory_allowed), {}),
        ((X,), {"memory": MEMORY, "memory_attention_mask": memory_allowed, "training": True}),
    ]
    layer(X, MEMORY), own(X, MEMORY)
    same_weights(layer, own)
    for arguments, options in calls:
        expected = layer(*arguments, **options)
        np.testing.assert_array_equal(own(*arguments, **options), expected)
    inputs = keras.Input((None, D), name="x"), keras.Input((None, D), name="memory")
    model = keras.Model(inputs, own(*inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded([X, MEMORY]), layer(X, MEMORY), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", [PassingEncoderBlock, ByName])
def test_masks_reach_the_parent_of_a_layer_that_passes_arguments_on(kind):
    """Includes the masks that Keras attaches."""
    tokens = np.array([[4, 5, 6, 0, 0], [7, 8, 9, 4, 5]])
    embedding = kt.PositionalEmbedding(19, D, pad_id=0)
    layer, own = kt.EncoderBlock(H, F, **BLOCK), kind(H, F, **BLOCK)
    x = embedding(tokens)
    layer(x), own(x)
    same_weights(layer, own)
    np.testing.assert_array_equal(own(embedding(tokens)), layer(embedding(tokens)))
    alone = to_numpy(own(embedding(tokens[:1, :3])))
    np.testing.assert_allclose(to_numpy(own(embedding(tokens)))[:1, :3], alone, atol=1e-5)
    assert inspect.signature(own.call).parameters.keys() >= {"attention_mask", "mask", "training"}


def test_the_output_shapes_of_a_subclass_are_known_to_a_model():
    inputs = keras.Input((T, D))
    pooled, weights = Pooled(H, F, **BLOCK)(inputs)
    assert (pooled.shape, weights.shape) == ((None, D), (None, H, T, T))
    out = keras.Model(inputs, [pooled, weights])(X)
    assert [tensor.shape for tensor in out] == [(B, D), (B, H, T, T)]
    assert PooledDecoder(F)(inputs).shape == (None, D)


def test_positional_arguments_are_refused_with_the_signature():
    message = (
        r"^`Wrong.call` must take `\*\*kwargs` if it takes `\*args`, or name its arguments: "
        r"`def call\(self, x, attention_mask=None, .*mask=None\)`\. "
        r"Received: `def call\(self, x, \*args\)`\.$"
    )
    with pytest.raises(TypeError, match=message):

        class Wrong(kt.EncoderBlock):
            def call(self, x, *args):
                return super().call(x, *args)


@pytest.mark.parametrize(
    ("layer", "instead"),
    [
        (lambda: kt.DecoderBlock(H, F), r"`EncoderBlock\(\.\.\., causal=True\)`"),
        (lambda: kt.Decoder(1, H, F), r"`Encoder\(\.\.\., causal=True\)`"),
        (lambda: kt.layers.MultiHeadCrossAttention(H), "`MultiHeadSelfAttention`"),
        (lambda: PassingDecoderBlock(H, F), r"`EncoderBlock\(\.\.\., causal=True\)`"),
    ],
)
def test_a_missing_memory_is_reported_with_the_layer_that_needs_none(layer, instead):
    made = layer()
    for arguments in ((X,), (keras.KerasTensor((B, T, D)),), (X, None)):
        with pytest.raises(
            TypeError, match="^`memory`, the sequence that `x` attends to, .*" + instead
        ) as error:
            made(*arguments)
        assert "\n" not in str(error.value) and repr(made.name) in str(error.value)


@pytest.mark.parametrize("name", ["EncoderBlock", "DecoderBlock", "Encoder", "Decoder"])
def test_help_lists_every_argument(name):
    layer = getattr(kt.layers, name)
    text = pydoc.plain(pydoc.render_doc(layer))
    arguments = text.partition("Args:")[2].partition("Call arguments:")[0]
    listed = re.findall(r"^ \|      (\w+): ", arguments, re.MULTILINE)
    expected = set(layer.options)
    assert expected <= set(listed) and len(listed) == len(set(listed))
    assert ("final_norm" in listed) == (not name.endswith("Block"))
    assert "**kwargs: `name`, `dtype` and `trainable`" in arguments
    assert 'Kind of normalisation: `"layer"` as in the paper' in arguments
    parameters = inspect.signature(layer.__init__).parameters
    assert set(listed) == set(parameters) - {"self", "kwargs"}
    for option in expected - {"num_layers", "num_heads", "d_ff"}:
        assert parameters[option].default == OPTIONS[option].default
    assert "attention_dropout: float = 0.0" in text  # as in the signature


def test_the_page_of_the_layers_lists_every_argument():
    page = (pathlib.Path(__file__).parents[2] / "docs" / "layers.md").read_text("utf-8")
    table = page.partition("\n## Arguments of blocks and stacks\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", table, re.MULTILINE))
    required = {"num_layers", "num_heads", "d_ff"}
    expected = {
        name: "required" if name in required else f"`{option.default!r}`".replace("'", '"')
        for name, option in OPTIONS.items()
    }
    assert rows == {**expected, "causal": "`False`"}


@keras.saving.register_keras_serializable("tests")
class BlockWithOwnAttention(kt.EncoderBlock):
    """Sets sublayers in the constructor, with names of their own."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.self_attention = kt.MultiHeadSelfAttention(
            H, d_k=6, d_v=5, position="relative", name="with_distances"
        )
        self.feed_forward_norm = keras.layers.UnitNormalization(name="unit")


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_build_keeps_the_sublayers_that_a_constructor_has_set(norm, tmp_path):
    block = BlockWithOwnAttention(H, F, dropout=0.0, norm=norm)
    own, x = block.self_attention, normal(B, T, D)
    inputs = keras.Input((None, D))
    model = keras.Model(inputs, block(inputs))
    assert block.self_attention is own
    paths = [weight.path.split("/", 1)[1] for weight in block.weights]
    assert sorted(paths) == sorted({*paths})
    assert {path.split("/")[0] for path in paths} == {
        *("with_distances", "self_attention_norm", "feed_forward")
    }
    expected = to_numpy(randomise(model)(x))
    reverse = to_numpy(model(x[:, ::-1]))[:, ::-1]
    assert np.abs(expected - reverse).max() > 1e-3  # it has distances
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(x), expected, rtol=0, atol=1e-5)
