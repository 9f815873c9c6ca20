"""Encoders of exports compute no padding, and have the same outputs as those that do."""

import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from mixer_rows import MIXERS, directions, mixer_of
from support import KV, B, D, F, H, K, S, T, normal, random_mask, randomise, sentences

from keras_transformer import Decoder, Encoder
from keras_transformer.export.attention import attend
from keras_transformer.export.packing import RealTokens
from keras_transformer.export.parity import copy_model
from keras_transformer.layers.kernels import PADDED, Kernels, Packing
from keras_transformer.models import (
    ClassifierConfig,
    SpanPredictor,
    SpanPredictorConfig,
    TextClassifier,
)

PACKED = Kernels(attend=attend, packing=RealTokens())
KINDS = {
    "plain": {},
    "rotary, grouped": {"num_heads": 4, "num_key_value_heads": 2, "d_k": 6, "position": "rotary"},
    "t5, pre-norm": {"position": {"kind": "t5", "shared": True}, "norm": "pre"},
    "relative, causal": {"position": "relative", "causal": True},
    "disentangled, embedding norm": {"position": "disentangled", "embedding_norm": True},
    "additive, window": {"score": "additive", "window": 3},
    **{kind: {"mixer": mixer_of(kind), "causal": directions(kind) == (True,)} for kind in MIXERS},
}
# Numbers of tokens of the texts of a batch. 0: nothing but padding.
MIXTURES = ([7, 1, 4, 11, 2], [0, 5, 0], [0, 0], [6], [7, 7, 7])


def encoders(kind, kernels=PACKED):
    """Returns an encoder, and one with the same weights and other kernels."""
    heads = {} if "mixer" in KINDS[kind] else {"num_heads": H, "d_k": K, "d_v": KV}
    options = {"num_layers": 2, "d_ff": F, **heads, **KINDS[kind]}
    pair = [Encoder(**options), Encoder(**options, kernels=kernels)]
    for encoder in pair:
        encoder.build((B, T, D))
    pair[1].set_weights(randomise(pair[0]).get_weights())
    return pair


def lengths_mask(*lengths):
    return (np.arange(T) < np.array(lengths)[:, None])[:, None]  # [B, 1, T]


@pytest.mark.parametrize(
    "kind",
    [
        slow("rotary, grouped"),
        "t5, pre-norm",
        slow("relative, causal"),
        slow("disentangled, embedding norm"),
        slow("additive, window"),
        *map(slow, MIXERS),
    ],
)
def test_real_tokens_have_the_same_states(kind):
    plain, packed = encoders(kind)
    holes = random_mask(3, T, seed=4)[:, None]
    for allowed in (lengths_mask(T, 1, 5), holes, lengths_mask(4, 0, 7), lengths_mask(T, T, T)):
        x = normal(3, T, D)
        expected, found = (encoder(x, tf.constant(allowed)).numpy() for encoder in (plain, packed))
        assert found.shape == expected.shape
        compared = allowed[:, 0] | (np.arange(T) == 0)  # also the first position, always
        np.testing.assert_allclose(found[compared], expected[compared], rtol=0, atol=1e-5)


def test_a_mask_of_pairs_and_one_for_all_texts_are_not_packed():
    plain, packed = encoders("plain")
    x = normal(B, T, D)
    for mask in (random_mask(B, T, T, seed=1), random_mask(1, 1, T, seed=2), None):
        np.testing.assert_allclose(packed(x, mask), plain(x, mask), rtol=0, atol=1e-5)


def test_attention_weights_are_the_same():
    x, allowed = normal(B, T, D), lengths_mask(T, 4)
    both = [
        encoder(x, tf.constant(allowed), return_attention_scores=True)[1]
        for encoder in encoders("plain")
    ]
    for name, weights in both[0].items():
        ours, theirs = (
            np.moveaxis(w.numpy(), 2, 1)[allowed[:, 0]] for w in (both[1][name], weights)
        )
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_only_real_tokens_are_multiplied():
    rows = []

    def dense(layer, x):
        rows.append(len(x))
        return layer(x)

    _, packed = encoders("plain", Kernels(attend=attend, packing=RealTokens(), dense=dense))
    packed(normal(3, T, D), tf.constant(lengths_mask(T, 1, 0)))
    assert rows == [T + 1 + 1] * 12, "two blocks of six products, for the first padding token too"


def test_a_text_is_not_affected_by_another_one():
    """Not even by one that overflows: padding has values of its own text."""
    _, packed = encoders("plain")
    allowed = tf.constant(lengths_mask(5, 4, 5))
    x = normal(3, T, D)
    expected = packed(x, allowed).numpy()
    x[1] = np.nan
    found = packed(x, allowed).numpy()
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[[0, 2]], expected[[0, 2]])


def test_a_decoder_is_not_packed():
    options = {"num_layers": 1, "num_heads": H, "d_ff": F, "d_k": K, "d_v": KV}
    plain, packed = Decoder(**options), Decoder(**options, kernels=PACKED)
    for decoder in (plain, packed):
        decoder.build((B, T, D), (B, S, D))
    packed.set_weights(randomise(plain).get_weights())
    assert packed.blocks[0].self_attention.kernels.packing is PADDED
    arguments = normal(B, T, D), normal(B, S, D, seed=1), lengths_mask(4, 9), random_mask(B, 1, S)
    np.testing.assert_allclose(packed(*arguments), plain(*arguments), rtol=0, atol=1e-5)


def test_every_form_of_padding_has_the_methods_of_the_default():
    names = {name for name in vars(Packing) if not name.startswith("_")}
    assert names == {name for name in vars(RealTokens) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("model", "config", "options"),
    [
        (TextClassifier, ClassifierConfig, {"pooling": "first", "labels": ("a", "b")}),
        slow(SpanPredictor, SpanPredictorConfig, {}),
    ],
)
def test_models_have_the_same_outputs(model, config, options):
    """In a graph for any batch and length, as in a SavedModel."""
    size = {"vocab_size": 19, "num_layers": 2, "d_model": 24, "num_heads": 3, "d_ff": 17}
    ours = randomise(model(config(**size, max_length=16, **options)))
    call = tf.function(copy_model(ours, PACKED), autograph=False)
    function = call.get_concrete_function(tf.TensorSpec((None, None), tf.int32))
    for lengths in MIXTURES:
        tokens = sentences(lengths, width=max(2, *lengths))
        expected, found = ours(tokens).numpy(), function(tf.constant(tokens)).numpy()
        if found.ndim == 3:  # outputs of padding have no meaning
            expected, found = expected[tokens != 0], found[tokens != 0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
