"""The figure of the learning curve: when it is drawn, and errors that must not stop training."""

import io
import types

import pytest
import rich.console

from keras_transformer.tasks import TASKS
from keras_transformer.training.loop.curve import Curve
from keras_transformer.training.loop.history import History, columns_of


@pytest.fixture
def make(tmp_path):
    """A function from options to a curve of a history with one row, and its messages."""
    pytest.importorskip("matplotlib")
    history = History(None, columns_of(TASKS["translation"]))
    history.add(1, {"train/loss": 3.0})

    def curve(path=tmp_path / "curve.png", **options):
        run = types.SimpleNamespace(curve=path)
        console = rich.console.Console(file=io.StringIO(), width=300)
        return Curve(run, history, TASKS["translation"], console, **options)

    return curve


def test_a_recent_figure_is_not_drawn_again(make):
    curve = make(draws=True, every=1e6)
    curve.follow()
    assert not curve.run.curve.exists()
    curve.draw()
    first = curve.run.curve.stat().st_mtime_ns
    curve.follow()
    assert curve.run.curve.stat().st_mtime_ns == first
    curve.every = 0
    curve.follow()
    assert curve.run.curve.stat().st_mtime_ns > first


def test_only_one_process_draws(make):
    curve = make(draws=False, every=0)
    curve.follow()
    curve.draw()
    assert not curve.run.curve.exists()


def test_a_figure_that_cannot_be_written_does_not_stop_training(make, tmp_path):
    (tmp_path / "folder.png").mkdir()
    curve = make(path=tmp_path / "folder.png", draws=True)
    curve.draw()
    assert "folder.png cannot be written: Is a directory." in curve.console.file.getvalue()
