"""Pictures of images and of time series."""

import datetime

import numpy as np
import pytest
from support import randomise, to_numpy

from keras_transformer import ImageClassifier, ImageClassifierConfig, ImageRecognizer
from keras_transformer.plots.hydrograph import draw_hydrograph
from keras_transformer.plots.image_attention import class_attention, draw_image_attention

matplotlib = pytest.importorskip("matplotlib.image")

LAYERS, HEADS, ROWS, COLUMNS = 2, 3, 2, 5


def recognizer(pooling="class", channels=1):
    config = ImageClassifierConfig(
        labels=("a", "b"),
        image_height=2 * ROWS,
        image_width=2 * COLUMNS,
        channels=channels,
        patch_size=2,
        num_layers=LAYERS,
        num_heads=HEADS,
        d_model=12,
        d_ff=8,
        pooling=pooling,
    )
    return ImageRecognizer(randomise(ImageClassifier(config)))


def image(channels=1):
    shape = (2 * ROWS, 2 * COLUMNS, channels)
    return np.random.default_rng(0).integers(0, 256, shape).astype("uint8")


def test_the_attention_is_the_class_token_s_of_every_patch_in_its_place():
    pixels, label, weights = class_attention(recognizer(), image())
    assert weights.shape == (LAYERS, HEADS, ROWS, COLUMNS) and label in ("a", "b")
    np.testing.assert_array_equal(pixels, image())
    model = recognizer().model
    all_weights = model.attention_weights(image()[None].astype("float32"))
    whole = to_numpy(all_weights["block_1/self_attention"])  # [1, H, S, S]
    for head, row, column in np.ndindex(HEADS, ROWS, COLUMNS):
        expected = whole[0, head, 0, 1 + row * COLUMNS + column]
        assert weights[1, head, row, column] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("channels", [1, 3])
def test_an_image_and_its_attention_are_drawn(tmp_path, channels):
    of_all, of_last = tmp_path / "all.png", tmp_path / "last.png"
    draw_image_attention(recognizer(channels=channels), image(channels), of_last)
    draw_image_attention(recognizer(channels=channels), image(channels), of_all, layers=True)
    heights, widths = zip(*(matplotlib.imread(p).shape[:2] for p in (of_last, of_all)), strict=True)
    assert heights[1] > 1.5 * heights[0] and widths[1] > 1.5 * widths[0]


def test_without_a_class_token_there_is_nothing_to_draw(tmp_path):
    with pytest.raises(ValueError, match="must have a model with a class token.*pooling='mean'"):
        draw_image_attention(recognizer("mean"), image(), tmp_path / "x.png")


def days(count):
    return [datetime.date(2001, 1, 1) + datetime.timedelta(day) for day in range(count)]


def test_a_hydrograph_is_drawn(tmp_path):
    rng = np.random.default_rng(0)
    observed, simulated, rain = rng.gamma(2, size=(3, 50))
    observed[7] = np.nan
    draw_hydrograph(days(50), observed, simulated, tmp_path / "one.png")
    both = {"lstm": simulated, "transformer": simulated + 1}
    draw_hydrograph(days(50), observed, both, tmp_path / "two.png", rain=rain, title="A river")
    one, two = (matplotlib.imread(tmp_path / name) for name in ("one.png", "two.png"))
    assert one.shape == two.shape and np.abs(one - two).mean() > 1e-3


def test_series_of_another_length_are_named(tmp_path):
    with pytest.raises(ValueError, match="`rain` must have a number for each of 5 dates. Received"):
        draw_hydrograph(days(5), np.zeros(5), np.zeros(5), tmp_path / "x.png", rain=np.zeros(4))
