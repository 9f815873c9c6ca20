"""The learning curve is a picture of the history."""

import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from keras_transformer.plots import curve, figure
from keras_transformer.plots.curve import draw_curve
from keras_transformer.tasks import TASKS
from keras_transformer.training.loop.history import History, columns_of

TASK = TASKS["translation"]


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were drawn, so that their lines can be read."""
    figures = []

    def new_figure(width, height):
        figures.append(figure.new_figure(width, height))
        return figures[-1]

    monkeypatch.setattr(curve, "new_figure", new_figure)
    return figures


def lines(figure: Figure):
    """Title of each panel with its curves: label, updates and values."""
    return {
        axes.get_title(loc="left"): [
            (line.get_label(), *(values.tolist() for values in line.get_data()))
            for line in axes.get_lines()
        ]
        for axes in figure.axes
    }


def test_every_curve_is_drawn_in_its_panel(tmp_path, drawn):
    history = History(tmp_path / "history.csv", columns_of(TASK))
    for update in (2, 4, 6):
        history.add(update, {"train/loss": 7 - update, "train/learning_rate": update / 100})
    history.add(6, {"validation/loss": 3, "validation/perplexity": 20, "validation/bleu": 31})
    path = tmp_path / "new" / "curve.png"
    draw_curve(history, path, TASK)
    assert lines(drawn[0]) == {
        "loss per token": [("training", [2, 4, 6], [5, 3, 1]), ("validation", [6], [3])],
        "perplexity": [("validation", [6], [20])],
        "BLEU": [("validation", [6], [31])],
        "learning rate": [("training", [2, 4, 6], [0.02, 0.04, 0.06])],
    }
    assert imread(path)[..., :3].min() < 0.5
    assert [file.name for file in path.parent.iterdir()] == ["curve.png"]


def test_what_was_never_measured_has_no_panel(tmp_path, drawn):
    history = History(tmp_path / "history.csv", columns_of(TASK))
    draw_curve(history, tmp_path / "curve.png", TASK)
    history.add(1, {"validation/loss": 3, "validation/perplexity": float("inf")})
    draw_curve(history, tmp_path / "curve.png", TASK)
    assert [list(lines(drawing)) for drawing in drawn] == [[], ["loss per token", "perplexity"]]
