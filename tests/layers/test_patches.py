"""Patches of images and their positions against loops; refused arguments."""

import math

import numpy as np
import pytest
from support import normal, randomise, to_numpy, weights_of

from keras_transformer.layers import PatchEmbedding, Sinusoidal, SinusoidalGrid
from keras_transformer.layers.inputs.patches import cut_patches

SAME = {"rtol": 0, "atol": 1e-5}
BATCH, ROWS, COLUMNS, SIZE, CHANNELS, D = 2, 3, 5, 2, 7, 12
PATCHES = ROWS * COLUMNS


def images(seed=0):
    return normal(BATCH, ROWS * SIZE, COLUMNS * SIZE, CHANNELS, seed=seed)


def patches_reference(images, size):
    """Dosovitskiy et al. (2021), section 3.1, one number at a time."""
    batch, height, width, channels = images.shape
    columns = width // size
    out = np.zeros((batch, height // size * columns, size * size * channels))
    for b, y, x, c in np.ndindex(images.shape):
        patch = (y // size) * columns + x // size
        out[b, patch, ((y % size) * size + x % size) * channels + c] = images[b, y, x, c]
    return out


def wave(position, feature, width):
    """Section 3.5, for one number."""
    angle = position / 10_000 ** (2 * (feature // 2) / width)
    return math.cos(angle) if feature % 2 else math.sin(angle)


def grid_reference():
    """Half of the features encode the row, half the column."""
    out = np.zeros((PATCHES, D))
    for patch, feature in np.ndindex(out.shape):
        place = patch // COLUMNS if feature < D // 2 else patch % COLUMNS
        out[patch, feature] = wave(place, feature % (D // 2), D // 2)
    return out


def test_patches_equal_the_reference():
    np.testing.assert_array_equal(cut_patches(images(), SIZE), patches_reference(images(), SIZE))


@pytest.mark.parametrize("class_tokens", [1, 0, 3])
@pytest.mark.parametrize("position", ["sinusoidal", "learned", "none"])
def test_the_embedding_equals_the_reference(position, class_tokens):
    layer = PatchEmbedding(SIZE, D, position, class_tokens)
    layer(images())
    weights = weights_of(randomise(layer))
    x = patches_reference(images().astype("float64"), SIZE) @ weights["projection/kernel"]
    x += weights["projection/bias"]
    for name in ["class_token_2", "class_token_1", "class_token"][3 - class_tokens :]:
        token = np.broadcast_to(weights[name], (BATCH, 1, D))
        x = np.concatenate([token, x], axis=1)
    if position == "sinusoidal":
        x[:, class_tokens:] += grid_reference()
    if position == "learned":
        x += weights["positions"]
    np.testing.assert_allclose(to_numpy(layer(images())), x, **SAME)


def test_patches_of_a_row_share_half_of_the_features_and_all_differ():
    table = SinusoidalGrid().grid_table(ROWS, COLUMNS, D).reshape(ROWS, COLUMNS, D)
    assert (table[:, :, : D // 2] == table[:, :1, : D // 2]).all()
    assert (table[:, :, D // 2 :] == table[:1, :, D // 2 :]).all()
    assert len(np.unique(table.reshape(PATCHES, D), axis=0)) == PATCHES


def test_layout_and_offset_work_as_for_sinusoids():
    table = SinusoidalGrid("halves", offset=3).grid_table(ROWS, COLUMNS, D)
    assert table[0, 0] == np.float32(math.sin(3)) and table[0, D // 4] == np.float32(math.cos(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, D), "`patch_size` must be at least 1. Received: patch_size=0."),
        ((SIZE, D, "rotary"), "`position` must be one of sinusoidal, learned, none. Received:"),
        ((SIZE, 10), "`d_model` must be divisible by 4 for sinusoidal positions of row and column"),
        (
            (SIZE, D, Sinusoidal(), -1),
            "`class_tokens` must be at least 0. Received: class_t",
        ),
    ],
)
def test_wrong_arguments_are_reported_in_one_line(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message) as error:
        PatchEmbedding(*arguments)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (images().astype("uint8"), "`images` must be floating"),
        (images()[0], r"`images` must be \[batch, height, width, channels\]"),
    ],
)
def test_wrong_images_are_reported_in_one_line(value, message):
    with pytest.raises((TypeError, ValueError), match=message) as error:
        PatchEmbedding(SIZE, D)(value)
    assert "\n" not in str(error.value)


def test_images_that_patches_do_not_fill_are_refused():
    with pytest.raises(
        ValueError, match="`patch_size` must divide .* patch_size=4, images of 6 x 10"
    ):
        PatchEmbedding(4, D)(images())


def test_images_of_another_size_are_refused():
    layer = PatchEmbedding(SIZE, D)
    layer(images())
    with pytest.raises(ValueError, match="height x width x channels of 6 x 10 x 7. Received by"):
        layer(images()[:, :4])


def test_a_grid_is_refused_for_tokens():
    from keras_transformer import PositionalEmbedding

    with pytest.raises(ValueError, match="`SinusoidalGrid` is only for a `PatchEmbedding`"):
        PositionalEmbedding(19, D, position=SinusoidalGrid())
