"""Callbacks: metrics that are shown, logged and saved between updates."""

import io
import os
import signal
from fractions import Fraction

import keras
import numpy as np
import pytest
import rich.console
import tensorflow as tf

from keras_transformer.tasks import TASKS
from keras_transformer.training.loop.callbacks import Interrupts, Logs, Saving, Validation
from keras_transformer.training.loop.history import History, columns_of
from keras_transformer.training.loop.messages import duration
from keras_transformer.training.loop.progress import Progress, Stopwatch


class Clock:
    """A clock that moves only when a test moves it."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def wait(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


def fit(clock, callbacks, updates, seconds=4, unit="tokens"):
    """Calls callbacks as `fit` does; an update takes some seconds and has 1,000 tokens."""
    for callback in callbacks:
        callback.set_model(Model(unit))
        callback.on_train_begin()
    for batch in range(updates):
        for callback in callbacks:
            callback.on_train_batch_begin(batch)
        clock.wait(seconds)
        for callback in callbacks:
            logs = {"loss": 3.0 - batch / 10, unit: 1000 * (batch + 1)}
            callback.on_train_batch_end(batch, logs)
    for callback in callbacks:
        callback.on_train_end()


class Model:
    """The attributes of a model that the callbacks use."""

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


def lines_of(progress):
    return progress.console.file.getvalue().splitlines()


def on_paper():
    return rich.console.Console(file=io.StringIO(), width=40)


@pytest.mark.parametrize("unit", ["tokens", "examples"])
def test_progress_in_a_file_is_an_occasional_line(clock, unit):
    stopwatch = Stopwatch(clock)
    progress = Progress(start=100, total=120, console=on_paper(), stopwatch=stopwatch)
    fit(clock, [stopwatch, progress], updates=20, unit=unit)
    lines = lines_of(progress)
    assert lines[0] == f"update 103 of 120  loss 2.800  250 {unit}/s  1:08 left"
    assert lines[-1] == f"update 120 of 120  loss 1.100  250 {unit}/s  0:00 left"
    assert len(lines) == 7  # after 12, 24, ... 72 seconds, and at the end


def test_progress_on_a_terminal_is_a_bar(clock):
    console = rich.console.Console(file=io.StringIO(), width=100, force_terminal=True)
    stopwatch = Stopwatch(clock)
    progress = Progress(start=0, total=2, console=console, stopwatch=stopwatch)
    fit(clock, [stopwatch, progress], updates=2, seconds=10)
    progress.close()
    assert "update 2 of 2  loss 2.900  100 tokens/s  0:00 left" in console.file.getvalue()
    assert "\x1b[?25h" in console.file.getvalue()  # the cursor is visible again


def test_time_between_updates_does_not_count_in_the_speed(clock, tmp_path):
    """A minute of validation, ten seconds of a checkpoint, five of a callback of the user."""
    stopwatch = Stopwatch(clock)
    history = History(None, columns_of(TASKS["translation"]))
    logs = Logs(0, 20, tmp_path / "logs", 4, history, stopwatch)
    validation = Validation(0, 20, 5, lambda update: clock.wait(60), now=clock)
    saving = Saving(0, 20, 10, lambda update: clock.wait(10), no_checkpoint, now=clock)
    picture = keras.callbacks.LambdaCallback(on_train_batch_end=lambda *_: clock.wait(5))
    progress = Progress(0, 20, on_paper(), stopwatch, [validation, saving], seconds=1)
    fit(clock, [stopwatch, progress, logs, validation, picture, saving], updates=20)
    lines = lines_of(progress)
    assert len(lines) == 20
    for line in lines[1:]:
        assert "  250 tokens/s  " in line
    speeds = read_scalars(tmp_path / "logs")["train/tokens_per_second"]
    assert speeds == [(8, 250.0), (12, 250.0), (16, 250.0), (20, 250.0)]
    # 16 updates of 4 seconds; then 3 validations and 1 checkpoint, whose durations are known by
    # now.
    assert lines[3].endswith("  1:04 left")
    assert lines[5].endswith(f"  {duration(14 * 4 + 3 * 60)} left")
    # The checkpoint of update 10 is still to come.
    assert lines[9].endswith(f"  {duration(10 * 4 + 3 * 60)} left")
    assert lines[10].endswith(f"  {duration(9 * 4 + 2 * 60 + 10)} left")
    assert lines[19].endswith(f"  {duration(60 + 10)} left")
    assert validation.seconds_left() == saving.seconds_left() == 0


def test_a_resumed_training_estimates_its_remaining_time(clock):
    """13 of 22 updates are done: validations after every fifth and the last, 15, 20 and 22."""
    validation = Validation(13, 22, 5, lambda update: clock.wait(7), now=clock)
    assert validation.seconds_left() == 0  # nothing has been measured yet
    left = []
    after = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda *_: left.append(validation.seconds_left())
    )
    fit(clock, [validation, after], updates=9)
    assert left == [0, 14, 14, 14, 14, 14, 7, 7, 0]


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        (5, [5, 10, 12]),
        (Fraction(7, 2), [4, 7, 11, 12]),  # epochs of 7 batches, two of which are an update
        (Fraction(2, 3), list(range(1, 13))),  # several epochs in an update
        (20, [12]),
    ],
)
def test_work_after_epochs_that_end_within_an_update(clock, every, expected):
    done = []
    saving = Saving(0, 12, every, done.append, no_checkpoint, now=clock)
    fit(clock, [saving], updates=12)
    assert done == expected


def read_scalars(folder):
    points = {}
    for file in folder.iterdir():
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                number = float(tf.make_ndarray(value.tensor))
                points.setdefault(value.tag, []).append((event.step, number))
    return points


def test_logs_can_be_read_by_tensorboard(tmp_path, clock):
    history = History(tmp_path / "history.csv", columns_of(TASKS["translation"]))
    stopwatch = Stopwatch(clock)
    logs = attached(Logs(10, 15, tmp_path / "logs", 2, history, stopwatch))
    for batch in range(5):
        stopwatch.on_train_batch_begin(batch)
        clock.wait(0.5)
        stopwatch.on_train_batch_end(batch)
        logs.model.mean_loss.update_state(batch)
        mean = float(logs.model.mean_loss.result())
        logs.on_train_batch_end(batch, {"loss": mean, "tokens": 100 * batch})
    logs.write(15, {"bleu": 33.0}, prefix="validation")
    points = read_scalars(tmp_path / "logs")
    # Each point is the mean since the previous one; the last update always has one.
    assert points["train/loss"] == [(12, 0.5), (14, 2.5), (15, 4.0)]
    assert points["train/tokens_per_second"] == [(14, 200.0), (15, 200.0)]
    assert points["train/learning_rate"] == [(12, 0.25), (14, 0.25), (15, 0.25)]
    assert points["validation/bleu"] == [(15, 33.0)]
    for name in ("train/loss", "train/learning_rate", "train/tokens", "validation/bleu"):
        assert list(zip(*history.curve(name), strict=True)) == points[name]


def test_validation_and_saving_happen_at_their_updates_and_at_the_end():
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


def test_the_state_is_saved_if_training_stops():
    saved = []
    saving = attached(Saving(0, 11, 5, saved.append, no_checkpoint))
    saving.model.stop_training = True
    saving.on_train_batch_end(1, {"loss": 1.0})
    assert saved == [2]


@pytest.mark.parametrize("loss", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_is_never_saved(loss):
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
            os.kill(os.getpid(), number)  # the default handler is back
            assert received == [number]
        assert signal.getsignal(number) is mine
    finally:
        signal.signal(number, before)
