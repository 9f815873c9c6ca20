"""The text embedder against the reference: pooling, truncation and unit length."""

import keras
import numpy as np
import pytest
import reference
from support import randomise, small_fields, to_numpy, weights_of
from test_text_classifier import batch, pooled

from keras_transformer.models import EmbedderConfig, TextEmbedder
from keras_transformer.models.heads.direction import Direction

SAME = {"rtol": 0, "atol": 1e-5}


def embedder(dtype=None, **options):
    fields = {**small_fields(EmbedderConfig, num_layers=2), **options}
    return randomise(TextEmbedder(EmbedderConfig(**fields), dtype=dtype))


@pytest.mark.parametrize(
    ("pooling", "dimensions", "normalize"),
    [("mean", 7, True), ("first", None, True), ("max", None, False), ("attention", 7, False)],
)
def test_vectors_equal_the_reference(pooling, dimensions, normalize):
    model = embedder(pooling=pooling, dimensions=dimensions, normalize=normalize)
    tokens, weights = batch(), weights_of(model)
    x = reference.encoder(
        reference.scope(weights, "encoder"),
        reference.embedding(reference.scope(weights, "embedding"), tokens),
        reference.everyone(13, tokens != 0),
        2,
        model.config.encoder.block.attention.num_heads,
    )
    expected = pooled(x, tokens != 0, pooling, weights.get("pooling/query"))[:, :dimensions]
    if normalize:
        expected = np.array([row / sum(x**2 for x in row) ** 0.5 for row in expected])
    vectors = model(tokens)
    assert vectors.dtype == "float32"
    np.testing.assert_allclose(vectors, expected, **SAME)


@pytest.mark.parametrize("options", [{}, {"pooling": "last", "causal": True, "position": "t5"}])
def test_padding_and_neighbours_change_nothing(options):
    model, tokens = embedder(**options), batch()
    together = to_numpy(model(tokens))
    np.testing.assert_allclose(model(np.pad(tokens, [(0, 0), (0, 5)])), together, **SAME)
    if options:  # positions are distances, so that padding may also come first
        np.testing.assert_allclose(model(np.pad(tokens, [(0, 0), (5, 0)])), together, **SAME)
    for row, vector in zip(tokens, together, strict=True):
        np.testing.assert_allclose(model(row[None, : (row != 0).sum()])[0], vector, **SAME)


@pytest.mark.half_precision
def test_half_precision_ends_in_float32():
    """In float16 the squares of large features would be infinite."""
    model = embedder(dtype="mixed_float16")
    vectors = model(batch())
    assert vectors.dtype == "float32"
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    large = Direction(dtype="float32")(np.full((1, 4), 60000, "float16"))
    np.testing.assert_allclose(large, [[0.5] * 4], atol=1e-6)


def test_a_vector_of_zeros_stays_finite():
    np.testing.assert_array_equal(Direction()(np.zeros((1, 3), "float32")), np.zeros((1, 3)))


LAYERS = [{"kind": "dense", "units": 9}, "unit_length", "layer_norm"]


def test_a_saved_model_is_the_same(tmp_path):
    model = embedder(dimensions=7, after_pooling=LAYERS, pooling="last", causal=True)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.config == model.config
    np.testing.assert_array_equal(again(batch()), model(batch()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"dimensions": 23},
            "`dimensions` must not exceed `d_model`, .*=23, where there are 22",
        ),
        (
            {"dimensions": 6, "after_pooling": [{"kind": "dense", "units": 5}]},
            "must not exceed the output of `after_pooling`, .*=6, where there are 5",
        ),
        ({"after_pooling": "dense"}, "`after_pooling` must be a list of layers. Received: .*dense"),
        (
            {"after_pooling": ["cnn"]},
            "`after_pooling` must be one of dense, layer_norm, unit",
        ),
        (
            {"after_pooling": [{"kind": "dense", "width": 3}]},
            "`after_pooling` of the kind 'dense' has the options units, activation, bias. Received",
        ),
        ({"after_pooling": [{"kind": "dense", "units": 0}]}, "`after_pooling`: `units` must be"),
        ({"dimensions": 0}, "`dimensions` must be .* Received: dimensions=0"),
        (
            {"pooling": "cls"},
            "`pooling` must be one of mean, max, first, last, atten",
        ),
        ({"similarity_scale": 0.0}, "`similarity_scale` must be above 0 and finite"),
        ({"normalize": "yes"}, "`normalize` must be"),
    ],
)
def test_wrong_options_are_refused(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        EmbedderConfig(**small_fields(EmbedderConfig), **changes)


def test_the_scale_suits_cosines_and_dot_products():
    assert [EmbedderConfig(**x).head.scale for x in ({}, {"normalize": False})] == [20.0, 1.0]
    assert EmbedderConfig(similarity_scale=5.0).head.scale == 5.0
