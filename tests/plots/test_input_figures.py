"""Figures of the inputs of a model: position encodings, masks, learning rates."""

import numpy as np
import pytest
import reference

from keras_transformer.plots.figure import save_figure
from keras_transformer.plots.masks import masks_figure
from keras_transformer.plots.positions import positions_figure
from keras_transformer.plots.schedule import POINTS, schedule_figure
from keras_transformer.positions import Position
from keras_transformer.training.schedule import (
    WarmupConstant,
    WarmupInverseSqrt,
    WarmupLinearDecay,
    warmup_cosine,
)


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_positions_and_their_dot_products(layout):
    figure = positions_figure("sinusoidal", 13, 10, layout=layout)
    codes, products = (axes.images[0].get_array() for axes in figure.axes[:2])
    expected = reference.sinusoids(13, 10, layout)
    np.testing.assert_allclose(codes, expected, atol=1e-6)
    for one, two in np.ndindex(13, 13):
        assert products[one, two] == pytest.approx(sum(expected[one] * expected[two]), abs=1e-5)
    titles = [axes.get_title() for axes in figure.axes[:2]]
    assert titles == ["Encoding of 13 positions", "Dot products of positions"]
    assert figure.axes[0].get_xlabel() == "feature"


@pytest.mark.parametrize("kind", sorted({*Position.kinds()} - {"sinusoidal", "binary"}))
def test_a_kind_without_fixed_codes_is_refused(kind):
    rule = f"`kind` must be a fixed position encoding, binary or sinu.*Received: kind='{kind}'"
    with pytest.raises(ValueError, match=rule):
        positions_figure(kind)


def test_custom_positions_are_drawn():
    class Steps(Position):
        def table(self, length, d_model):
            return np.arange(length * d_model).reshape(length, d_model)

    figure = positions_figure(Steps(), 3, 4)
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), np.arange(12).reshape(3, 4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d_model": 7}, "`d_model` must be even. Received: d_model=7"),
        ({"length": 0}, "`length` must be at least 1"),
        ({"kind": "wavy"}, "`kind` must be one of alibi, .*Received: kind='wavy'"),
    ],
)
def test_wrong_sizes_of_positions_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        positions_figure(**options)


def test_masks_equal_those_of_the_model():
    figure = masks_figure(length=7, real=4)
    allowed = {axes.get_title(): axes.images[0].get_array() for axes in figure.axes if axes.images}
    assert list(allowed) == ["Padding", "Causal", "Padding and causal"]
    for query, key in np.ndindex(7, 7):
        assert allowed["Padding"][query, key] == (key < 4)
        assert allowed["Causal"][query, key] == (key <= query)
        assert allowed["Padding and causal"][query, key] == (key < 4 and key <= query)
    names = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert names == ["1", "2", "3", "4", "pad", "pad", "pad"]


def test_more_tokens_than_positions_are_refused():
    with pytest.raises(ValueError, match="`real` must be at most `length`. Received: real=6"):
        masks_figure(length=5, real=6)


def rate(n, d_model=16, warmup=5):
    """Computes Eq. 3."""
    return d_model**-0.5 * min(n**-0.5, n * warmup**-1.5)


def test_a_schedule_is_drawn_over_the_numbers_of_the_updates():
    """It starts at the first update, whose number is 1 and not 0."""
    figure = schedule_figure({"a $b": (WarmupInverseSqrt(16, 5), 40)})
    updates, rates = figure.axes[0].get_lines()[0].get_data()
    assert updates.tolist() == list(range(1, 41))
    np.testing.assert_allclose(rates, [rate(n) for n in range(1, 41)], rtol=1e-5)
    assert figure.axes[0].get_xlabel() == "update"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a $b"]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_several_schedules_share_axes(scale, tmp_path):
    schedules = {
        "constant": (WarmupConstant(0.3, 2), 9),
        "linear": (WarmupLinearDecay(0.3, 2, 9), 9),
        "cosine": (warmup_cosine(0.3, 2, 9), 9),
        "long": (WarmupInverseSqrt(16, 50), 30 * POINTS),
    }
    figure = schedule_figure(schedules, scale)
    (axes,) = figure.axes
    assert axes.get_xscale() == axes.get_yscale() == scale
    drawn = [line.get_data() for line in axes.get_lines()]
    for (schedule, last), (updates, rates) in zip(schedules.values(), drawn, strict=True):
        assert (updates[0], updates[-1]) == (1, last) and len(updates) <= POINTS
        assert np.all(np.diff(updates) > 0)
        for update, value in [*zip(updates, rates, strict=True)][:: len(updates) // 5]:
            assert value == pytest.approx(float(schedule(update - 1)), rel=1e-6)
    save_figure(figure, tmp_path / "x.svg")


@pytest.mark.parametrize(
    ("schedules", "scale", "message"),
    [
        ({}, "linear", "`schedules` must have at least one schedule"),
        ({"x": (WarmupConstant(0.3, 2), 9)}, "cubic", "`scale` must be one of linear, log"),
        ({"x": (WarmupConstant(0.3, 2), 0)}, "log", "`updates` must be at least 1"),
    ],
)
def test_schedules_that_cannot_be_drawn_are_refused(schedules, scale, message):
    with pytest.raises(ValueError, match=message):
        schedule_figure(schedules, scale)
