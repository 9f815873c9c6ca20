"""Figures of images and of time series."""

import datetime

import numpy as np
import pytest
from marks import slow
from support import randomise, to_numpy

from keras_transformer.models import ImageClassifier, ImageClassifierConfig
from keras_transformer.pipelines import ImageClassificationPipeline
from keras_transformer.plots.attention_page import attention_page
from keras_transformer.tasks.image_classification.plots import image_attention_figure
from keras_transformer.tasks.time_series.plots import hydrograph_figure

pytest.importorskip("matplotlib")

LAYERS, HEADS, ROWS, COLUMNS = 2, 3, 2, 5


def image_classifier(pooling="class", channels=1):
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
    return ImageClassificationPipeline(randomise(ImageClassifier(config)))


def image(channels=1):
    shape = (2 * ROWS, 2 * COLUMNS, channels)
    return np.random.default_rng(0).integers(0, 256, shape).astype("uint8")


def test_the_attention_of_the_class_token_to_every_patch_is_in_place():
    (attention,) = image_classifier().attention(image()).values()
    weights = attention.weights
    assert weights.shape == (LAYERS, HEADS, ROWS, COLUMNS) and attention.label in ("a", "b")
    np.testing.assert_array_equal(attention.pixels, image())
    model = image_classifier().model
    all_weights = model.attention_weights(image()[None].astype("float32"))
    whole = to_numpy(all_weights["encoder/block_1/self_attention"])  # [1, H, S, S]
    for head, row, column in np.ndindex(HEADS, ROWS, COLUMNS):
        expected = whole[0, head, 0, 1 + row * COLUMNS + column]
        assert weights[1, head, row, column] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("channels", [slow(1), 3])
def test_an_image_and_its_attention_are_drawn(channels):
    attention = image_classifier(channels=channels).attention(image(channels))["class"]
    pixels, weights = attention.pixels, attention.weights
    of_last, of_all = (image_attention_figure(attention, layers).axes for layers in (False, True))
    assert [axis.get_title() for axis in of_last] == [attention.label, "attention"]
    np.testing.assert_array_equal(np.squeeze(of_last[0].images[0].get_array()), np.squeeze(pixels))
    np.testing.assert_allclose(
        of_last[1].images[1].get_array(), weights[-1].mean(axis=0), rtol=0, atol=1e-6
    )
    assert len(of_all) == LAYERS * (HEADS + 1) and of_all[-1].get_title() == "layer 2, head 3"
    np.testing.assert_allclose(of_all[-1].images[1].get_array(), weights[1, 2], rtol=0, atol=1e-6)


def test_without_a_class_token_there_is_nothing_to_draw():
    with pytest.raises(ValueError, match="must have a class token.*pooling='mean'"):
        image_classifier("mean").attention(image())


def test_an_image_has_no_page_of_tokens():
    with pytest.raises(ValueError, match="`attentions` must be .* tokens.*Received: kind='class'"):
        attention_page(image_classifier().attention(image()))


def days(count):
    return [datetime.date(2001, 1, 1) + datetime.timedelta(day) for day in range(count)]


def test_a_hydrograph_is_drawn():
    rng = np.random.default_rng(0)
    observed, simulated, rain = rng.gamma(2, size=(3, 50))
    observed[7] = np.nan
    both = {"lstm": simulated, "transformer": simulated + 1}
    figure = hydrograph_figure(days(50), observed, both, rain=rain, title="A river")
    above, below = figure.axes
    lines = {line.get_label(): line.get_ydata() for line in below.lines}
    assert list(lines) == ["observed", "lstm", "transformer"]
    for name, values in {"observed": observed, **both}.items():
        np.testing.assert_array_equal(lines[name], values)
    assert above.get_title() == "A river" and below.get_ylabel() == "discharge"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(lines)
    np.testing.assert_allclose([bar.get_height() for bar in above.patches], rain)
    assert above.get_ylim()[0] > above.get_ylim()[1], "rain falls from above"
    assert len(hydrograph_figure(days(50), observed, simulated).axes) == 1


@pytest.mark.parametrize("step", [datetime.timedelta(hours=1), datetime.timedelta(days=1), 0.5])
@pytest.mark.parametrize("array", [list, np.array])
def test_bars_of_rain_are_as_wide_as_a_step(step, array):
    first = 0.0 if step == 0.5 else datetime.datetime(2005, 8, 31)
    dates = [first + n * step for n in (0, 1, 2, 5)]
    if array is np.array and step != 0.5:
        dates = np.array(dates, "datetime64[m]")
    figure = hydrograph_figure(dates, np.ones(4), np.ones(4), rain=np.ones(4))
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    np.testing.assert_allclose(widths, step if step == 0.5 else step / datetime.timedelta(days=1))


def test_series_of_another_length_are_reported():
    with pytest.raises(ValueError, match="`rain` must have a number for each of 5 dates. Received"):
        hydrograph_figure(days(5), np.zeros(5), np.zeros(5), rain=np.zeros(4))
