"""Callbacks between the updates: logs, validation, Ctrl-C, checkpoints."""

import contextlib
import math
import signal
import threading
import time

import keras
import tensorflow as tf

from keras_transformer.training.loop.messages import diverged


class UpdateCallback(keras.callbacks.Callback):
    """A callback that counts updates from the start of the run, not of this call of `fit`.

    Args:
        start: Updates done before this call of `fit`.
        total: Updates at the end of the training.
    """

    def __init__(self, start, total):
        super().__init__()
        self.start = start
        self.total = total

    def on_train_batch_end(self, batch, logs=None):
        self.on_update(self.start + batch + 1, logs)

    def on_update(self, update, logs):
        """Called after every update with its number, counting from 1."""


class Recurring(UpdateCallback):
    """Work every `every` updates and after the last one, and how long it will still take.

    Args:
        start: See `UpdateCallback`.
        total: See `UpdateCallback`.
        every: Updates between two times.
        now: Function that returns the time in seconds.
    """

    def __init__(self, start, total, every, now=time.monotonic):
        super().__init__(start, total)
        self.every = every
        self.now = now
        self._last, self._seconds = start, 0.0

    def is_due(self, update):
        """Returns whether it is time to work after an update."""
        return update % self.every == 0 or update == self.total

    @contextlib.contextmanager
    def timed(self, update):
        """Measures how long the work after an update takes: that inside of the block."""
        begin = self.now()
        yield
        self._last, self._seconds = update, self.now() - begin

    def seconds_left(self):
        """Returns the time of all work still to come, if each takes as long as the last one did;
        0 before the first one.
        """
        if self._last >= self.total:
            return 0.0
        return (math.ceil(self.total / self.every) - self._last // self.every) * self._seconds


class Logs(UpdateCallback):
    """Writes loss, learning rate and speed for TensorBoard, each as a mean over `every` updates.

    Args:
        start: See `UpdateCallback`.
        total: See `UpdateCallback`.
        directory: Folder of the logs; `None` to write nothing.
        every: Updates between two points.
        history: The `History` that gets the same points.
        stopwatch: The `Stopwatch` of the updates, which the speed is measured with.
    """

    def __init__(self, start, total, directory, every, history, stopwatch):
        super().__init__(start, total)
        self.history = history
        self.stopwatch = stopwatch
        self._writer = tf.summary.create_noop_writer()
        if directory is not None:
            self._writer = tf.summary.create_file_writer(str(directory))
        self.every = every
        self._mark = None

    def on_update(self, update, logs):
        if update % self.every and update != self.total:
            return
        rate = self.model.optimizer.learning_rate  # of the next update
        unit = self.model.unit
        scalars = {"loss": logs["loss"], "learning_rate": float(rate), unit: logs[unit]}
        seconds = self.stopwatch.seconds
        if self._mark is not None:
            then, before = self._mark
            scalars[f"{unit}_per_second"] = (logs[unit] - before) / (seconds - then)
        self._mark = (seconds, logs[unit])
        self.write(update, scalars)
        self.model.mean_loss.reset_state()

    def write(self, update, scalars, prefix="train"):
        """Writes one point of each curve."""
        self.history.add(update, {f"{prefix}/{name}": value for name, value in scalars.items()})
        with self._writer.as_default(step=update):
            for name, value in scalars.items():
                tf.summary.scalar(f"{prefix}/{name}", value)
        self._writer.flush()


class Validation(Recurring):
    """Every `every` updates and at the end, `look` at the model.

    Args:
        start: See `UpdateCallback`.
        total: See `UpdateCallback`.
        every: Updates between two validations.
        look: Function of the number of the update that returns the figures as a dictionary.
        now: See `Recurring`.
    """

    def __init__(self, start, total, every, look, now=time.monotonic):
        super().__init__(start, total, every, now)
        self.look = look
        self.figures = {}

    def on_update(self, update, logs):
        if self.is_due(update):
            with self.timed(update):
                self.figures = self.look(update)


class Interrupts(UpdateCallback):
    """Lets Ctrl-C (and SIGTERM) finish the update, then ends `fit`; a second one ends at once.

    Use it as a context manager around `fit`, so that the signals are given back in any case.
    Outside of the main thread, where Python takes no signals, it does nothing.

    Args:
        start: See `UpdateCallback`.
        total: See `UpdateCallback`.
        anywhere: Function that returns whether its argument is true in any of the processes that
            train together: all of them must stop after the same update.
    """

    def __init__(self, start=0, total=0, anywhere=bool):
        super().__init__(start, total)
        self.anywhere = anywhere
        self.received = None  # the number of the signal
        self._previous = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_):
        self._give_back()

    def _receive(self, number, frame):
        self.received = number
        self._give_back()

    def _give_back(self):
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def on_update(self, update, logs):
        if self.anywhere(self.received is not None):
            self.model.stop_training = True


class Terminations:
    """Makes SIGTERM an exception, as Ctrl-C is one, so that what is open is closed on the way out.

    A context manager; outside of the main thread, where Python takes no signals, it does nothing.

    Raises:
        KeyboardInterrupt: From the block, with the number of the signal.
    """

    def __init__(self):
        self._previous = None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGTERM, self._receive)
        return self

    def __exit__(self, *_):
        if self._previous is not None:
            signal.signal(signal.SIGTERM, self._previous)

    def _receive(self, number, frame):
        raise KeyboardInterrupt(number)


class Saving(Recurring):
    """Every `every` updates, at the end, and when `fit` is about to stop, saves a checkpoint.

    Args:
        start: See `UpdateCallback`.
        total: See `UpdateCallback`.
        every: Updates between two checkpoints.
        save: Function of the number of the update.
        last_good: Function that names the checkpoint to go back to, for the message below.
        wanted: Function of the number of the update: whether it must be saved in any case.
        now: See `Recurring`.

    Raises:
        ValueError: From `fit`, if the loss is no longer a number; nothing is saved then.
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

    def on_update(self, update, logs):
        if not math.isfinite(logs["loss"]):
            raise diverged(f"the loss is {logs['loss']} at update {update}", self.last_good())
        if self.is_due(update) or self.model.stop_training or self.wanted(update):
            with self.timed(update):
                self.save(update)
