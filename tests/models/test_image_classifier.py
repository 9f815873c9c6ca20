"""The image classifier against the reference."""

import functools

import keras
import numpy as np
import pytest
import reference
from marks import slow
from support import normal, randomise, to_numpy, weights_of

from keras_transformer.models import ImageClassifier, ImageClassifierConfig

MODEL = {"rtol": 0, "atol": 1e-4}
LABELS = ("a", "b", "c", "d", "e")


def config(**changes):
    fields = {
        "labels": LABELS,
        "image_height": 6,
        "image_width": 10,
        "channels": 3,
        "patch_size": 2,
        "num_layers": 2,
        "d_model": 12,
        "num_heads": 2,
        "d_k": 5,
        "d_v": 7,
        "d_ff": 17,
        "position": "learned",
    }
    return ImageClassifierConfig(**{**fields, **changes})


@functools.cache
def model_of(**changes):
    return randomise(ImageClassifier(config(**changes)))


def pixels(seed=0):
    return 127.5 + 60 * normal(3, 6, 10, 3, seed=seed)


def patches(images):
    """Cuts images into patches `[B, 15, 12]` by slicing."""
    cuts = [images[:, y : y + 2, x : x + 2] for y in range(0, 6, 2) for x in range(0, 10, 2)]
    return np.stack([cut.reshape(len(images), 12) for cut in cuts], axis=1)


@pytest.mark.parametrize(
    ("pooling", "norm"), [("class", "pre"), ("mean", "pre"), ("max", "pre"), ("attention", "pre")]
)
def test_logits_equal_the_reference(pooling, norm):
    model = model_of(pooling=pooling, norm=norm)
    weights = weights_of(model)
    x = patches(pixels().astype("float64") / 127.5 - 1)
    x = reference.dense(reference.scope(weights, "embedding/projection"), x)
    if pooling == "class":
        token = np.broadcast_to(weights["embedding/class_token"], (3, 1, 12))
        x = np.concatenate([token, x], axis=1)
    x = x + weights["embedding/positions"]
    allowed = np.ones((3, x.shape[1], x.shape[1]), bool)
    x = reference.encoder(reference.scope(weights, "encoder"), x, allowed, 2, 2, norm)
    if pooling == "attention":
        scores = (x @ weights["pooling/query"])[..., 0]
        shares = np.array([reference.softmax(row) for row in scores])
        pooled = np.einsum("bs,bsd->bd", shares, x)
    else:
        pooled = {"class": x[:, 0], "mean": x.mean(axis=1), "max": x.max(axis=1)}[pooling]
    expected = reference.dense(reference.scope(weights, "output"), pooled)
    np.testing.assert_allclose(to_numpy(model(pixels())), expected, **MODEL)


@pytest.mark.parametrize(("tokens", "classifiers", "pooler"), [(2, 1, False), (3, 2, True)])
def test_several_class_tokens_and_the_mean_of_their_classifiers(tokens, classifiers, pooler):
    model = model_of(class_tokens=tokens, classifiers=classifiers, pooler=pooler)
    assert model.config.max_length == 15 + tokens
    weights = weights_of(model)
    x = patches(pixels().astype("float64") / 127.5 - 1)
    x = reference.dense(reference.scope(weights, "embedding/projection"), x)
    names = ["class_token", "class_token_1", "class_token_2"][:tokens]
    vectors = np.array([weights[f"embedding/{name}"] for name in names])
    x = np.concatenate([np.broadcast_to(vectors, (3, tokens, 12)), x], axis=1)
    x = x + weights["embedding/positions"]
    allowed = np.ones((3, x.shape[1], x.shape[1]), bool)
    x = reference.encoder(reference.scope(weights, "encoder"), x, allowed, 2, 2, "post")
    if pooler:
        x = np.tanh(reference.dense(reference.scope(weights, "pooler"), x))
    logits = [
        reference.dense(reference.scope(weights, name), x[:, number])
        for number, name in enumerate(["output", "output_1"][:classifiers])
    ]
    expected = np.mean(logits, axis=0)
    np.testing.assert_allclose(to_numpy(model(pixels())), expected, **MODEL)


@pytest.mark.long
@pytest.mark.slow
def test_all_classifiers_are_trained_and_saved(tmp_path):
    model = randomise(ImageClassifier(config(class_tokens=2, classifiers=2)))
    before = [to_numpy(weight) for weight in model.trainable_weights]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    model.fit(pixels(), np.array([0, 1, 2]), verbose=0)
    for weight, old in zip(model.trainable_weights, before, strict=True):
        assert (to_numpy(weight) != old).any(), weight.path
    model.save(tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(to_numpy(loaded(pixels())), to_numpy(model(pixels())))


@pytest.mark.parametrize(
    "position", [slow("sinusoidal"), "learned", slow("rotary"), slow("alibi"), "none"]
)
def test_the_order_of_patches_matters_unless_there_is_no_position(position):
    """The patches are permuted."""
    changes = {"d_k": 6, "pooling": "mean", "position": position}
    model = randomise(ImageClassifier(config(**changes)))
    images = pixels()
    exchanged = images.copy()
    exchanged[:, :2, :2], exchanged[:, 4:, 6:8] = images[:, 4:, 6:8], images[:, :2, :2]
    difference = np.abs(to_numpy(model(images)) - to_numpy(model(exchanged))).max()
    assert (difference < 1e-5) == (position == "none")


def test_attention_weights_of_all_layers_are_returned():
    weights = model_of().attention_weights(pixels())
    assert sorted(weights) == [f"encoder/block_{n}/self_attention" for n in (0, 1)]
    for value in weights.values():
        assert value.shape == (3, 2, 16, 16)
        np.testing.assert_allclose(to_numpy(value).sum(axis=-1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (
            pixels()[:, :4],
            "`images` must have height x width x channels of 6 x 10 x 3. Received by",
        ),
        (pixels().astype("uint8"), "`images` must be floating"),
    ],
)
def test_images_of_another_shape_are_reported_in_one_line(images, message):
    with pytest.raises((TypeError, ValueError), match=message) as error:
        model_of()(images)
    assert "\n" not in str(error.value)


def test_the_number_of_positions_follows_from_the_sizes():
    assert config().max_length == 16 and config(pooling="mean").max_length == 15
    assert config(max_length=16).max_length == 16


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": ("a",)}, "`labels` must be at least two different strings"),
        ({"patch_size": 0}, "`patch_size` must be at least 1"),
        (
            {"pooling": "first"},
            "`pooling` must be one of class, mean, max, attention, class_mean. Received",
        ),
        ({"max_length": 3}, "`max_length` follows from the number of patches, here 16. Received"),
        (
            {"class_tokens": 2, "pooling": "mean"},
            "`class_tokens` has no effect without `pooling=.class.` or `.class_mean.`. R",
        ),
        ({"classifiers": 2}, "`classifiers` must be at most `class_tokens`, because"),
        ({"classifiers": 2, "pooling": "max"}, "`classifiers` must be .*pooling='max'"),
        ({"position": "binary"}, "`position` must not be binary for patches, .*Binary"),
    ],
)
def test_wrong_configurations_are_reported_in_one_line(changes, message):
    with pytest.raises(ValueError, match=message):
        config(**changes)
