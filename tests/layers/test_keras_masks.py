"""Keras's own masks: padding does not change real positions, in any kind of model."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from documents import blocks, run
from marks import slow
from support import D, F, H, K, normal, randomise, sentences, to_numpy

from keras_transformer import (
    Decoder,
    DecoderBlock,
    Encoder,
    EncoderBlock,
    FeedForward,
    MultiHeadSelfAttention,
    PositionalEmbedding,
)
from keras_transformer.layers import MultiHeadCrossAttention

V, PAD = 19, 5
SAME = {"rtol": 0, "atol": 1e-5}
BLOCK = {"num_heads": H, "d_ff": F, "d_k": K, "d_v": K, "dropout": 0.0}
SOURCES, TARGETS = [7, 4, 2], [5, 6, 3]


def tokens(lengths, more=0, seed=0):
    return sentences(lengths, V, pad_id=PAD, width=max(lengths) + more, seed=seed)


def assert_padding_changes_nothing(model, *sides):
    """Checks that real positions of the output stay the same with 4 and 9 more pads."""
    before = to_numpy(model(*[tokens(side, seed=n) for n, side in enumerate(sides)]))
    assert np.all(np.isfinite(before))
    for n in range(len(sides)):
        wider = [tokens(side, more=(4, 9)[n] * (n == m), seed=m) for m, side in enumerate(sides)]
        after = to_numpy(model(*wider))
        for row, length in enumerate(sides[0]):
            ours, theirs = after[row, :length], before[row, :length]
            np.testing.assert_allclose(ours, theirs, **SAME, err_msg=f"side {n}, row {row}")


EMBEDDINGS = {
    "of Keras": lambda: keras.layers.Embedding(V, D, mask_zero=True),
    "ours": lambda: PositionalEmbedding(V, D, pad_id=PAD),
}
ATTENDING = {
    "self": lambda: MultiHeadSelfAttention(H, d_k=K, d_v=K),
    "encoder_block": lambda: EncoderBlock(**BLOCK),
    "encoder": lambda: Encoder(2, **BLOCK, norm="pre"),
}
TO_MEMORY = {
    "cross": lambda: MultiHeadCrossAttention(H, d_k=K, d_v=K),
    "decoder_block": lambda: DecoderBlock(**BLOCK),
    "decoder": lambda: Decoder(2, **BLOCK),
}


def embedded(embedding, ids):
    """Embeds ids with Keras's layer, whose padding id is always 0."""
    if isinstance(embedding, keras.layers.Embedding):
        ids = keras.ops.where(keras.ops.equal(ids, PAD), 0, ids)
    return embedding(ids)


class Subclassed(keras.Model):
    """A model of layers in sequence; later layers may also attend to the second input."""

    def __init__(self, embedding, *layers):
        super().__init__()
        self.embedding, self.steps = embedding, layers

    def call(self, inputs):
        x, *others = (embedded(self.embedding, ids) for ids in inputs)
        for step in self.steps:
            x = step(x, *others)
        return x


def functional(embedding, *layers, inputs=1):
    ids = [keras.Input((None,), dtype="int32") for _ in range(inputs)]
    x, *others = (embedded(embedding, side) for side in ids)
    for layer in layers:
        x = layer(x, *others)
    return keras.Model(ids, x)


@pytest.mark.parametrize(("embedding", "name"), [slow("of Keras", "encoder"), ("ours", "encoder")])
def test_self_attention(embedding, name):
    layers = [ATTENDING[name](), FeedForward(F), ATTENDING[name]()]
    model = randomise(functional(EMBEDDINGS[embedding](), *layers))
    assert_padding_changes_nothing(lambda ids: model([ids]), SOURCES)
    other = Subclassed(model.layers[1] if embedding == "ours" else find(model), *layers)
    assert_padding_changes_nothing(lambda ids: other([ids]), SOURCES)
    np.testing.assert_allclose(other([tokens(SOURCES)]), model([tokens(SOURCES)]), **SAME)


def find(model):
    return next(x for x in model.layers if isinstance(x, keras.layers.Embedding))


@pytest.mark.parametrize(("embedding", "name"), [slow("of Keras", "decoder"), ("ours", "decoder")])
def test_attention_to_a_memory(embedding, name):
    layers = [TO_MEMORY[name](), TO_MEMORY[name]()]
    made = EMBEDDINGS[embedding]()
    model = randomise(functional(made, *layers, inputs=2))
    assert_padding_changes_nothing(lambda *ids: model(list(ids)), TARGETS, SOURCES)
    other = Subclassed(made, *layers)
    assert_padding_changes_nothing(lambda *ids: other(list(ids)), TARGETS, SOURCES)


def test_sequential_with_and_without_an_input():
    layers = [PositionalEmbedding(V, D, pad_id=PAD), EncoderBlock(**BLOCK), FeedForward(F)]
    model = keras.Sequential([keras.Input((None,), dtype="int32"), *layers])
    assert_padding_changes_nothing(randomise(model), SOURCES)
    later = keras.Sequential(layers)
    assert_padding_changes_nothing(later, SOURCES)
    np.testing.assert_allclose(later(tokens(SOURCES)), model(tokens(SOURCES)), **SAME)


def test_masks_of_features():
    """Keras's `Masking`, for inputs that are not tokens."""
    block = EncoderBlock(**BLOCK)
    model = keras.Sequential([keras.Input((None, D)), keras.layers.Masking(9.0), block])
    randomise(model)
    x = normal(2, 6, D)
    wide = np.pad(x, [(0, 0), (0, 3), (0, 0)], constant_values=9.0)
    np.testing.assert_allclose(to_numpy(model(wide))[:, :6], model(x), **SAME)


@pytest.mark.slow
def test_saved_and_loaded_and_cloned(tmp_path, embedding="ours"):
    layers = [DecoderBlock(**BLOCK, name="one"), Decoder(1, **BLOCK, name="two")]
    model = randomise(functional(EMBEDDINGS[embedding](), *layers, inputs=2))
    inputs = [tokens(TARGETS), tokens(SOURCES, more=3, seed=1)]
    model.save(tmp_path / "model.keras")
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    for other in (keras.saving.load_model(tmp_path / "model.keras"), clone):
        np.testing.assert_allclose(other(inputs), model(inputs), **SAME)
        assert_padding_changes_nothing(lambda *ids, other=other: other(list(ids)), TARGETS, SOURCES)


def test_keras_attention_removes_masks_from_the_tensors_of_its_caller():
    x, memory = (keras.layers.Embedding(V, D, mask_zero=True)(tokens(TARGETS)) for _ in range(2))
    assert memory._keras_mask is not None
    keras.layers.MultiHeadAttention(2, 4)(x, memory, memory)
    assert memory._keras_mask is None


def test_keras_attention_on_the_same_memory_in_a_functional_model(embedding="ours"):
    """It comes before and between blocks that share the memory; the mask is part of the graph."""
    source, target = (keras.Input((None,), dtype="int32") for _ in range(2))
    made = EMBEDDINGS[embedding]()
    x, memory = embedded(made, target), embedded(made, source)
    # Keras's second attention would otherwise attend to padding itself.
    for counts in (1.0, 0.0, 0.0):
        x = x + counts * keras.layers.MultiHeadAttention(2, 4)(x, memory, memory)
        x = DecoderBlock(**BLOCK)(x, memory)
    model = randomise(keras.Model([target, source], x))
    assert_padding_changes_nothing(lambda *ids: model(list(ids)), TARGETS, SOURCES)


@pytest.mark.slow
@pytest.mark.parametrize("embedding", ["ours", pytest.param("of Keras", marks=pytest.mark.slow)])
def test_keras_attention_on_the_same_memory_in_a_subclassed_model(embedding):
    """A layer of ours finds the mask again that it saw on the memory or attached to it."""
    thief, first = keras.layers.MultiHeadAttention(2, 4), DecoderBlock(**BLOCK)
    stack, encoder = Decoder(2, **BLOCK), EncoderBlock(**BLOCK)
    made = EMBEDDINGS[embedding]()

    def model(target, source):
        x, memory = embedded(made, target), encoder(embedded(made, source))
        x = x + thief(x, memory, memory)  # the encoder has attached the mask
        x = first(x, memory)
        x = x + 0 * thief(x, memory, memory)  # has lost the mask of the memory
        return stack(x, memory)

    model(tokens(TARGETS), tokens(SOURCES))
    for layer in (thief, first, stack, encoder, made):
        randomise(layer)
    assert_padding_changes_nothing(model, TARGETS, SOURCES)
    assert_padding_changes_nothing(tf.function(model, reduce_retracing=True), TARGETS, SOURCES)


def test_masks_are_combined():
    """Explicit, of Keras, and causal; a sentence of padding attends to nothing."""
    layer = randomise_built(MultiHeadSelfAttention(H, d_k=K, d_v=K, causal=True))
    rng = np.random.default_rng(0)
    x, allowed, mask = normal(3, 6, D), rng.random((3, 6, 6)) < 0.7, rng.random((3, 6)) < 0.7
    mask[2] = False
    both = allowed & mask[:, None] & np.tri(6, dtype=bool)
    given, weights = layer(x, allowed, return_attention_scores=True, mask=mask)
    assert np.all(to_numpy(weights)[~np.broadcast_to(both[:, None], weights.shape)] == 0)
    assert np.all(to_numpy(given)[2] == 0)
    np.testing.assert_allclose(given, layer(x, both), **SAME)
    carried = keras.ops.convert_to_tensor(x)
    carried._keras_mask = keras.ops.convert_to_tensor(mask)
    out = layer(carried, allowed)
    np.testing.assert_allclose(out, given, **SAME)
    np.testing.assert_array_equal(out._keras_mask, mask)
    np.testing.assert_allclose(layer(carried, mask=np.ones_like(mask)), layer(x), **SAME)


def randomise_built(layer):
    layer.build((None, None, D))
    return randomise(layer)


def test_layers_that_propagate_the_mask():
    embedding = PositionalEmbedding(V, D, pad_id=PAD)
    ids = tokens(SOURCES)
    x = embedding(ids)
    np.testing.assert_array_equal(x._keras_mask, ids != PAD)
    for layer in (EncoderBlock(**BLOCK), Encoder(1, **BLOCK), FeedForward(F)):
        np.testing.assert_array_equal(layer(x)._keras_mask, ids != PAD)
    out, _ = EncoderBlock(**BLOCK)(x, return_attention_scores=True)
    np.testing.assert_array_equal(out._keras_mask, ids != PAD)
    memory = embedding(tokens(TARGETS))
    np.testing.assert_array_equal(DecoderBlock(**BLOCK)(x, memory)._keras_mask, ids != PAD)
    np.testing.assert_array_equal(embedding(x, reverse=True)._keras_mask, ids != PAD)
    plain = PositionalEmbedding(V, D)(ids)
    assert getattr(plain, "_keras_mask", None) is None


@pytest.mark.parametrize("pad_id", [-1, V, 2.0, "a", True])
def test_a_pad_id_outside_the_vocabulary(pad_id):
    message = rf"`pad_id` must be an id .* Received: pad_id={pad_id!r}, vocab_size=19\."
    with pytest.raises(ValueError, match=message):
        PositionalEmbedding(V, D, pad_id=pad_id)


def test_the_documented_classifier_does_not_average_padding():
    classifier = randomise(run(blocks("docs/layers.md", "python")[:1])["classifier"])
    ids = tokens(SOURCES) * (tokens(SOURCES) != PAD)  # its padding id is 0
    expected = to_numpy(classifier(ids))
    for more in (1, 8):
        outputs = classifier(np.pad(ids, [(0, 0), (0, more)]))
        np.testing.assert_allclose(outputs, expected, **SAME)
    assert np.abs(expected - to_numpy(classifier(np.where(ids == 0, 6, ids)))).max() > 0.01
