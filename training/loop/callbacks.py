"""Callbacks between updates: logs, validation, interrupts and checkpoints."""

import contextlib
import math
import signal
import threading
import time
from collections.abc import Generator

import keras
import tensorflow as tf

from keras_transformer.training.loop.messages import diverged


class UpdateCallback(keras.callbacks.Callback):
    """Base of callbacks that count updates from the start of the run, not of a call of `fit`.

    Args:
        start: Number of updates before this call of `fit`.
        total: Number of updates at the end of training.
    """

    def __init__(self, start, total):
        super().__init__()
        self.start = start
        self.total = total

    def on_train_batch_end(self, batch, logs=None) -> None:
        self.on_update(self.start + batch + 1, logs)

    def on_update(self, update, logs) -> None:
        """Called after every update with its number, counted from 1."""


class Recurring(UpdateCallback):
    """Base of callbacks that work every `every` updates and after the last one.

    They measure how long the work takes, for an estimate of the time left.

    Args:
        start, total: See `UpdateCallback`.
        every: Interval of the work, in updates; with a fraction of an update, the work is done
            after the update in which an interval ends.
        now: Function that returns the time in seconds.
    """

    def __init__(self, start, total, every, now=time.monotonic):
        super().__init__(start, total)
        self.every = every
        self.now = now
        self._last, self._seconds = start, 0.0

    def is_due(self, update) -> bool:
        """Returns `True` if the work is due after an update."""
        ends = update // self.every > (update - 1) // self.every
        return ends or update == self.total

    @contextlib.contextmanager
    def timed(self, update) -> Generator[None]:
        """Context manager that measures the work after an update, done in its block."""
        begin = self.now()
        yield
        self._last, self._seconds = update, self.now() - begin

    def seconds_left(self) -> float:
        """Returns the time of all work to come, estimated from the last time; 0 before the first.

        The unit is seconds.
        """
        if self._last >= self.total:
            return 0.0
        return (math.ceil(self.total / self.every) - self._last // self.every) * self._seconds


class Logs(UpdateCallback):
    """Writes loss, learning rate and speed for TensorBoard, as means over `every` updates.

    Args:
        start, total: See `UpdateCallback`.
        directory: Folder of the logs. `None`: no logs are written.
        every: Updates between two points.
        history: The `History`, which receives the same points.
        stopwatch: The `Stopwatch` that measures the updates.
        first_loss: Loss of the first update of the run. `None`: it is still to come.

    Attributes:
        first_loss: See above.
        last_loss: Mean loss at the last point. `None`: there is no point yet.
    """

    def __init__(self, start, total, directory, every, history, stopwatch, first_loss=None):
        super().__init__(start, total)
        self.history = history
        self.first_loss, self.last_loss = first_loss, None
        self.stopwatch = stopwatch
        self._writer = tf.summary.create_noop_writer()
        if directory is not None:
            self._writer = tf.summary.create_file_writer(str(directory))
        self.every = every
        self._mark = None

    def on_update(self, update, logs) -> None:
        if update == 1:
            self.first_loss = float(logs["loss"])
        if update % self.every and update != self.total:
            return
        self.last_loss = float(logs["loss"])
        rate = self.model.optimizer.learning_rate  # that of the next update
        unit = self.model.unit
        scalars = {"loss": logs["loss"], "learning_rate": float(rate), unit: logs[unit]}
        seconds = self.stopwatch.seconds
        if self._mark is not None:
            then, before = self._mark
            scalars[f"{unit}_per_second"] = (logs[unit] - before) / (seconds - then)
        self._mark = (seconds, logs[unit])
        self.write(update, scalars)
        self.model.mean_loss.reset_state()

    def write(self, update, scalars, prefix="train") -> None:
        """Writes a point of each curve."""
        self.history.add(update, {f"{prefix}/{name}": value for name, value in scalars.items()})
        with self._writer.as_default(step=update):
            for name, value in scalars.items():
                tf.summary.scalar(f"{prefix}/{name}", value)
        self._writer.flush()


class Validation(Recurring):
    """Validates the model every `every` updates and at the end.

    Args:
        start, total: See `UpdateCallback`.
        every: Updates between two validations.
        validate: Function that takes the number of updates done and validates the model.
        now: See `Recurring`.
    """

    def __init__(self, start, total, every, validate, now=time.monotonic):
        super().__init__(start, total, every, now)
        self.validate = validate

    def on_update(self, update, logs) -> None:
        if self.is_due(update):
            with self.timed(update):
                self.validate(update)


class Interrupts(UpdateCallback):
    """Ends `fit` after the current update on Ctrl-C or SIGTERM; a second signal ends it at once.

    Use it as a context manager around `fit`, so that the signal handlers are always restored. It
    does nothing outside of the main thread, where Python receives no signals.

    Args:
        start, total: See `UpdateCallback`.
        anywhere: Function that returns `True` if its argument is true in any of the processes that
            train together: all of them must stop after the same update.
    """

    def __init__(self, start=0, total=0, anywhere=bool):
        super().__init__(start, total)
        self.anywhere = anywhere
        self.received = None  # the number of the signal
        self._previous = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_) -> None:
        self._restore_handlers()

    def _receive(self, number, frame):
        self.received = number
        self._restore_handlers()

    def _restore_handlers(self):
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def on_update(self, update, logs) -> None:
        if self.anywhere(self.received is not None):
            self.model.stop_training = True


class Terminations:
    """Context manager that turns SIGTERM into an exception, like Ctrl-C.

    Files and locks are then closed as after any exception. It does nothing outside of the main
    thread, where Python receives no signals.

    Raises:
        KeyboardInterrupt: From the block, with the number of the signal.
    """

    def __init__(self):
        self._previous = None

    def __enter__(self) -> "Terminations":
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGTERM, self._receive)
        return self

    def __exit__(self, *_) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGTERM, self._previous)

    def _receive(self, number, frame):
        raise KeyboardInterrupt(number)


class Saving(Recurring):
    """Saves a checkpoint every `every` updates, at the end and when `fit` is about to stop.

    Args:
        start, total: See `UpdateCallback`.
        every: Updates between two checkpoints.
        save: Function that takes the number of updates done and saves the checkpoint.
        last_good: Function that describes the last good checkpoint, for an error.
        wanted: Function that takes the number of updates done and returns `True` if a checkpoint
            must be saved in any case.
        now: See `Recurring`.

    Raises:
        ValueError: From `fit`, if the loss is NaN or infinite; no checkpoint is saved then.
    """

    def __init__(
        self,
        start,
        total,
        every,
        save,
        last_good,
        wanted=lambda update: False,
        now=time.monotonic,
    ):
        super().__init__(start, total, every, now)
        self.save = save
        self.last_good = last_good
        self.wanted = wanted

    def on_update(self, update, logs) -> None:
        if not math.isfinite(logs["loss"]):
            raise diverged(f"the loss is {logs['loss']} at update {update}", self.last_good())
        if self.is_due(update) or self.model.stop_training or self.wanted(update):
            with self.timed(update):
                self.save(update)
