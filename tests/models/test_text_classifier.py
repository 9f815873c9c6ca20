"""The text classifier against the reference; effects of padding and neighbours."""

import functools
import warnings

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from marks import slow
from support import (
    assert_padding_stays_finite,
    randomise,
    sentences,
    small_config,
    small_fields,
    to_numpy,
    weights_of,
)

from keras_transformer.models import ClassifierConfig, TextClassifier
from keras_transformer.models.heads.pooling import Pooling

MODEL = {"rtol": 0, "atol": 1e-4}
SAME = {"rtol": 0, "atol": 1e-5}
KINDS = ("mean", "max", "first", "attention")
LABELS = ("bad", "so", "good", "best", "?")


def classifier_config(**changes):
    """Returns the sizes of `small_config`, with two layers."""
    labels, pooling = changes.pop("labels", LABELS), changes.pop("pooling", "mean")
    fields = small_fields(ClassifierConfig, num_layers=2, **changes)
    return ClassifierConfig(**fields, labels=labels, pooling=pooling)


@functools.cache
def model_of(pooling, **changes):
    """One model for all tests of a kind; no test changes its weights."""
    return randomise(TextClassifier(classifier_config(pooling=pooling, **changes)))


def batch(pad_id=0, seed=0):
    """Returns four texts of 13, 6, 1 and 9 tokens."""
    return sentences([13, 6, 1, 9], pad_id=pad_id, seed=seed)


def pooled(x, real, kind, query=None):
    """Pools the tokens of each text into a vector, one token and one feature at a time."""
    out = np.zeros((len(x), x.shape[2]))
    for b, d in np.ndindex(out.shape):
        values = [x[b, s, d] for s in range(x.shape[1]) if real[b, s]]
        if kind == "first":
            out[b, d] = x[b, 0, d]
        elif kind == "max":
            out[b, d] = max(values)
        elif kind == "mean":
            out[b, d] = sum(values) / len(values)
        else:
            scores = [x[b, s] @ query[:, 0] for s in range(x.shape[1]) if real[b, s]]
            out[b, d] = reference.softmax(np.array(scores)) @ values
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_pooling_follows_its_formula(kind):
    """Two of five and three of seven tokens are real, in one text the last token."""
    x = np.random.default_rng(0).normal(size=(3, 7, 5)).astype("float32")
    real = np.array([[1, 1, 0, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0, 1], [1] * 7], bool)
    layer = Pooling(kind)
    layer(x, real[:, None])
    randomise(layer)
    query = layer.query.numpy() if kind == "attention" else None
    expected = pooled(x.astype("float64"), real, kind, query)
    np.testing.assert_allclose(layer(x, real[:, None]), expected, **SAME)


@pytest.mark.parametrize("kind", ["mean", "max", "attention"])
def test_a_text_without_tokens_is_pooled_to_zeros(kind):
    x = np.random.default_rng(0).normal(size=(2, 3, 5)).astype("float32")
    padding_mask = np.array([[[False] * 3], [[True] * 3]])
    out = to_numpy(randomise(Pooling(kind))(x, padding_mask))
    np.testing.assert_array_equal(out[0], np.zeros(5))
    assert np.abs(out[1]).max() > 0.1


def test_an_unknown_pooling_is_refused():
    with pytest.raises(ValueError, match="`kind` must be one of .*Received: kind='middle'"):
        Pooling("middle")


@pytest.mark.parametrize(
    ("kind", "norm"), [("mean", "pre"), ("max", "pre"), ("first", "pre"), ("attention", "pre")]
)
def test_logits_equal_the_reference(kind, norm):
    """Sections 3.1 to 3.5, pooling, and a linear layer."""
    model = model_of(kind, norm=norm)
    tokens, weights, record = batch(), weights_of(model), {}
    x = reference.encoder(
        reference.scope(weights, "encoder"),
        reference.embedding(reference.scope(weights, "embedding"), tokens),
        reference.everyone(13, tokens != 0),
        2,
        model.config.encoder.block.attention.num_heads,
        norm=norm,
        record=record,
    )
    expected = reference.dense(
        reference.scope(weights, "output"),
        pooled(x, tokens != 0, kind, weights.get("pooling/query")),
    )
    logits = model(tokens)
    assert logits.dtype == "float32" and logits.shape == (4, 5)
    np.testing.assert_allclose(logits, expected, **MODEL)
    attended = model.attention_weights(tokens)
    assert sorted(attended) == [f"encoder/block_{n}/self_attention" for n in (0, 1)]
    for name, of_layer in attended.items():
        _, block, attention = name.split("/")
        np.testing.assert_allclose(of_layer, record[block][attention], **SAME)


@pytest.mark.parametrize(
    ("kind", "pad_id"), [slow("mean", 7), slow("max", 7), slow("first", 7), ("attention", 7)]
)
def test_padding_and_neighbours_change_nothing(kind, pad_id):
    model = model_of(kind, pad_id=pad_id)
    tokens = batch(pad_id)
    together = to_numpy(model(tokens))
    wider = np.pad(tokens, [(0, 0), (0, 5)], constant_values=pad_id)
    np.testing.assert_allclose(model(wider), together, **SAME)
    for b, row in enumerate(tokens):
        alone = model(row[None, : (row != pad_id).sum()])
        np.testing.assert_allclose(alone[0], together[b], **SAME)
    others = batch(pad_id, seed=5)
    others[1] = tokens[1]
    after = to_numpy(model(others))
    np.testing.assert_allclose(after[1], together[1], **SAME)
    assert np.abs(after[0] - together[0]).max() > 0.1


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        ("float32", "first"),
        ("mixed_bfloat16", "max"),
        ("mixed_float16", "mean"),
        ("mixed_float16", "attention"),
    ],
    indirect=["policy"],
)
def test_texts_of_only_padding_stay_finite(policy, kind):
    model = randomise(TextClassifier(classifier_config(pooling=kind)))
    assert model.encoder.compute_dtype == policy.compute_dtype
    assert_padding_stays_finite(model, batch())


def test_every_weight_has_a_gradient():
    model = model_of("attention", norm="pre")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(batch()) ** 2)
    for variable, gradient in zip(
        model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
    ):
        assert np.abs(to_numpy(tf.convert_to_tensor(gradient))).max() > 1e-2, variable.path


def test_dropout_is_active_in_training_only():
    """As in section 5.4, and before the linear layer."""
    model, plain = (
        randomise(TextClassifier(classifier_config(dropout=rate))) for rate in (0.4, 0.0)
    )
    tokens = batch()
    expected = to_numpy(plain(tokens))
    np.testing.assert_array_equal(model(tokens), expected)
    first, second = (to_numpy(model(tokens, training=True)) for _ in range(2))
    assert np.abs(first - expected).max() > 0.1 < np.abs(first - second).max()
    rates = [x.rate for x in model._flatten_layers() if isinstance(x, keras.layers.Dropout)]
    assert rates.count(0.4) == 1 + 2 + 1  # for the embedding, for each block, for the pooling


@pytest.mark.parametrize("kind", ["max", "attention"])
def test_a_saved_model_is_the_same_with_its_labels(tmp_path, kind):
    model, tokens = model_of(kind), batch()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded) is TextClassifier and loaded.config == model.config
    assert loaded.config.head.labels == LABELS and loaded.config.head.pooling == kind
    np.testing.assert_array_equal(loaded(tokens), model(tokens))


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_of_one_token_gives_no_warning(kind):
    """Keras's softmax takes an axis of length 1 for a mistake and warns at every call."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model_of(kind)(np.array([[3]]))


def test_labels_are_a_tuple_even_after_json():
    config = ClassifierConfig(**{**classifier_config().to_flat(), "labels": list(LABELS)})
    assert config == classifier_config() and hash(config) == hash(classifier_config())
    assert config.head.num_labels == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": ("a",)}, r"at least two different strings. Received: labels=\('a',\)"),
        ({"labels": ("a", "a")}, "at least two different strings"),
        ({"labels": ("a", "b", "a")}, "must not contain duplicates. Received: labels="),
        ({"labels": (0, 1)}, r"at least two different strings. Received: labels=\(0, 1\)"),
        ({"labels": "ab"}, "at least two different strings. Received: labels='ab'"),
        ({"pooling": "middle"}, "`pooling` must be .*Received: pooling='middle'"),
    ],
)
def test_wrong_labels_and_poolings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        classifier_config(**changes)


def test_another_configuration_is_refused():
    with pytest.raises(TypeError, match="`config` must be a ClassifierConfig or the name of a pre"):
        TextClassifier(small_config())
