"""Learning curves are drawn from histories."""

import pytest

from keras_transformer.plots.curves import curve_figure, curves_figure
from keras_transformer.plots.figure import COLORS, save_figure
from keras_transformer.tasks import TASKS
from keras_transformer.training.loop.history import History, columns_of

TASK = TASKS["translation"]


def lines(figure):
    """Returns the title of each panel with its curves: label, updates and values."""
    return {
        axes.get_title(loc="left"): [
            (line.get_label(), *(values.tolist() for values in line.get_data()))
            for line in axes.get_lines()
        ]
        for axes in figure.axes
    }


def history(folder, name="history", task=TASK, **validations):
    """Writes a history with some validations, one every second update."""
    made = History(folder / f"{name}.csv", columns_of(task))
    made.restore(0)  # writes the header
    for number, values in enumerate(zip(*validations.values(), strict=True), start=1):
        names = (f"validation/{figure}" for figure in validations)
        made.add(2 * number, dict(zip(names, values, strict=True)))
    made.flush()
    return made


def test_every_curve_is_drawn_in_its_panel(tmp_path):
    history = History(tmp_path / "history.csv", columns_of(TASK))
    for update in (2, 4, 6):
        history.add(update, {"train/loss": 7 - update, "train/learning_rate": update / 100})
    history.add(6, {"validation/loss": 3, "validation/perplexity": 20, "validation/bleu": 31})
    assert lines(curve_figure(history, TASK)) == {
        "loss per token": [("training", [2, 4, 6], [5, 3, 1]), ("validation", [6], [3])],
        "perplexity": [("validation", [6], [20])],
        "BLEU": [("validation", [6], [31])],
        "learning rate": [("training", [2, 4, 6], [0.02, 0.04, 0.06])],
    }


def test_a_metric_without_values_has_no_panel(tmp_path):
    history = History(tmp_path / "history.csv", columns_of(TASK))
    nothing = curve_figure(history, TASK)
    assert lines(nothing) == {}
    save_figure(nothing, tmp_path / "curve.png")
    history.add(1, {"validation/loss": 3, "validation/perplexity": float("inf")})
    assert list(lines(curve_figure(history, TASK))) == ["loss per token", "perplexity"]


def test_several_runs_are_lines_of_one_figure(tmp_path):
    """Names that matplotlib would hide or parse as formulas are shown literally."""
    one = history(tmp_path, "one", loss=[3, 2], bleu=[10, 20])
    two = history(tmp_path, "two", loss=[4, 3])
    figure = curves_figure({"_runs/$x_1$": (one, TASK), "runs/two": (two, TASK)})
    drawn = lines(figure)
    assert list(drawn) == ["loss per token", "BLEU"]
    assert [curve[1:] for curve in drawn["loss per token"]] == [([2, 4], [3, 2]), ([2, 4], [4, 3])]
    assert [curve[1:] for curve in drawn["BLEU"]] == [([2, 4], [10, 20])]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["_runs/$x_1$", "runs/two"]
    assert not any(text.get_parse_math() for text in legend.get_texts())
    colors = [line.get_color() for line in figure.axes[0].get_lines()]
    assert colors == [handle.get_color() for handle in legend.legend_handles] == [*COLORS[:2]]
    save_figure(figure, tmp_path / "curves.png")


def test_runs_of_several_tasks_have_the_panels_of_all(tmp_path):
    classification = TASKS["classification"]
    one = history(tmp_path, "one", loss=[3], perplexity=[9])
    two = history(tmp_path, "two", classification, loss=[1], accuracy=[90])
    figure = curves_figure({"one": (one, TASK), "two": (two, classification)})
    titles = ["loss per token", "perplexity", "loss per example", "accuracy"]
    assert [*lines(figure)] == [title for title in titles]
    assert [len(axes.get_lines()) for axes in figure.axes] == [1] * 4
    assert figure.axes[1].get_yscale() == "log" and figure.axes[0].get_yscale() == "linear"


def test_a_run_without_validations_is_reported(tmp_path):
    one, two = history(tmp_path, "one", loss=[3]), history(tmp_path, "two")
    two.add(3, {"train/loss": 3})
    with pytest.raises(ValueError, match="second must have been validated"):
        curves_figure({"first": (one, TASK), "second": (two, TASK)})


def test_a_history_is_read_without_changing_it(tmp_path):
    """`restore` would drop the lines after a checkpoint."""
    written = history(tmp_path, loss=[3, 2])
    before = written.path.read_bytes()
    with open(written.path, "ab") as file:
        file.write(b"5,half a r")
    read = History.read(written.path, columns_of(TASK))
    assert read.curve("validation/loss") == ([2, 4], [3, 2])
    assert written.path.read_bytes() == before + b"5,half a r"
    assert not History.read(tmp_path / "missing.csv", columns_of(TASK)).rows
    assert not (tmp_path / "missing.csv").exists()
