"""Plots of arithmetic draw the numbers that they are given."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from keras_transformer.tasks.arithmetic.plots import exact_match_figure, mental_image_figure


def test_exact_match_by_digits():
    results = {
        "Neural GPU": {"20": {"exact_match": 100.0}, "100": {"exact_match": 70.0}},
        "Transformer": {"100": {"exact_match": 0.0}, "20": {"exact_match": 90.0}},
    }
    (axis,) = exact_match_figure(results, trained=20).axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in axis.lines}
    assert lines["Neural GPU"] == [[20, 100], [100, 70]]
    assert lines["Transformer"] == [[20, 90], [100, 0]]
    assert axis.lines[-1].get_xdata()[0] == 20 and axis.get_xlabel() == "digits of each number"
    with pytest.raises(ValueError, match="`results` must have an evaluation for each model"):
        exact_match_figure({"Neural GPU": {}})


def test_mental_images():
    """The maps that vary most are drawn, in this order."""
    images = np.random.default_rng(0).normal(size=(6, 5, 3, 4)) * [1, 9, 0.5, 4]
    panels = mental_image_figure(images, maps=2).axes[:2]
    for axis, place in zip(panels, (1, 3), strict=True):
        assert axis.get_title() == f"map {place}"
        np.testing.assert_array_equal(axis.images[0].get_array(), images[:, :, 0, place])
    with pytest.raises(ValueError, match=r"`images` must be the mental images .* shape=\(2, 3\)"):
        mental_image_figure(np.zeros((2, 3)))
