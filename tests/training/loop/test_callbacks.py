"""Callbacks: figures that are shown, logged and saved between the updates."""

import io
import os
import signal

import keras
import numpy as np
import pytest
import rich.console
import tensorflow as tf

from keras_transformer.tasks import TASKS
from keras_transformer.training.loop import callbacks
from keras_transformer.training.loop.callbacks import Interrupts, Logs, Progress, Saving, Validation
from keras_transformer.training.loop.history import History, columns_of


class Clock:
    """A clock that moves only when a test moves it."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(callbacks, "time", clock)
    return clock


class Model:
    """The attributes of a model that the callbacks touch."""

    def __init__(self, unit):
        self.unit = unit
        self.optimizer = keras.optimizers.SGD(0.25)
        self.mean_loss = keras.metrics.Mean()
        self.stop_training = False


def no_checkpoint():
    return "There is nothing to go back to"


def attached(callback, unit="tokens"):
    callback.set_model(Model(unit))
    return callback


@pytest.mark.parametrize("unit", ["tokens", "examples"])
def test_progress_in_a_file_is_a_line_now_and_then(clock, unit):
    text = io.StringIO()
    console = rich.console.Console(file=text, width=40)
    progress = attached(Progress(start=100, total=120, console=console, seconds=10), unit)
    progress.on_train_begin()
    for batch in range(20):
        clock.now += 4  # seconds for each update of 1,000 tokens
        progress.on_train_batch_end(batch, {"loss": 3.0 - batch / 10, unit: 1000 * batch})
    progress.on_train_end()
    lines = text.getvalue().splitlines()
    assert lines[0] == f"update 103 of 120  loss 2.800  250 {unit}/s  1:08 left"
    assert lines[-1] == f"update 120 of 120  loss 1.100  250 {unit}/s  0:00 left"
    assert len(lines) == 7  # after 12, 24, ... 72 seconds, and at the end


def test_progress_on_a_terminal_is_a_bar(clock):
    text = io.StringIO()
    console = rich.console.Console(file=text, width=100, force_terminal=True)
    progress = attached(Progress(start=0, total=2, console=console))
    progress.on_train_begin()
    clock.now += 2
    progress.on_train_batch_end(0, {"loss": 2.5, "tokens": 100})
    clock.now += 2
    progress.on_train_batch_end(1, {"loss": 2.25, "tokens": 300})
    progress.close()
    progress.close()
    assert "update 2 of 2  loss 2.250  100 tokens/s  0:00 left" in text.getvalue()
    assert "\x1b[?25h" in text.getvalue()  # the cursor is back


def read_scalars(folder):
    points = {}
    for file in folder.iterdir():
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                number = float(tf.make_ndarray(value.tensor))
                points.setdefault(value.tag, []).append((event.step, number))
    return points


def test_logs_are_tensorboards(tmp_path, clock):
    history = History(tmp_path / "history.csv", columns_of(TASKS["translation"]))
    logs = attached(Logs(10, 15, directory=tmp_path / "logs", every=2, history=history))
    for batch in range(5):
        clock.now += 0.5
        logs.model.mean_loss.update_state(batch)
        mean = float(logs.model.mean_loss.result())
        logs.on_train_batch_end(batch, {"loss": mean, "tokens": 100 * batch})
    logs.write(15, {"bleu": 33.0}, prefix="validation")
    points = read_scalars(tmp_path / "logs")
    # Each point is the mean since the last one; the last update always has one.
    assert points["train/loss"] == [(12, 0.5), (14, 2.5), (15, 4.0)]
    assert points["train/tokens_per_second"] == [(14, 200.0), (15, 200.0)]
    assert points["train/learning_rate"] == [(12, 0.25), (14, 0.25), (15, 0.25)]
    assert points["validation/bleu"] == [(15, 33.0)]
    for name in ("train/loss", "train/learning_rate", "train/tokens", "validation/bleu"):
        assert list(zip(*history.curve(name), strict=True)) == points[name]


def test_validation_and_saving_come_at_their_updates_and_at_the_end():
    looked, saved = [], []
    validation = attached(Validation(4, 11, 3, lambda update: looked.append(update) or {}))
    saving = attached(
        Saving(4, 11, 5, saved.append, no_checkpoint, wanted=lambda update: update == 7)
    )
    for batch in range(7):
        for callback in (validation, saving):
            callback.on_train_batch_end(batch, {"loss": 1.0})
    assert looked == [6, 9, 11]
    assert saved == [5, 7, 10, 11]


def test_what_stops_training_is_saved():
    saved = []
    saving = attached(Saving(0, 11, 5, saved.append, no_checkpoint))
    saving.model.stop_training = True
    saving.on_train_batch_end(1, {"loss": 1.0})
    assert saved == [2]


@pytest.mark.parametrize("loss", [np.nan, np.inf])
def test_a_loss_that_is_no_number_is_never_saved(loss):
    saved = []
    saving = attached(Saving(0, 9, 2, saved.append, lambda: "Go back to x.npz"))
    saving.on_train_batch_end(0, {"loss": 1.0})
    saving.on_train_batch_end(1, {"loss": 1.0})
    with pytest.raises(ValueError, match=f"the loss is {loss} at update 4. Go back to x.npz; "):
        saving.on_train_batch_end(3, {"loss": loss})
    assert saved == [2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_waits_for_the_update_and_the_second_does_not(number):
    before = signal.getsignal(number)
    received = []
    signal.signal(number, lambda *_: received.append(number))
    mine = signal.getsignal(number)
    try:
        with attached(Interrupts()) as interrupts:
            interrupts.on_train_batch_end(0, {})
            assert not interrupts.model.stop_training
            os.kill(os.getpid(), number)
            assert (interrupts.received, received) == (number, [])
            interrupts.on_train_batch_end(1, {})
            assert interrupts.model.stop_training
            os.kill(os.getpid(), number)  # no longer ours
            assert received == [number]
        assert signal.getsignal(number) is mine
    finally:
        signal.signal(number, before)
