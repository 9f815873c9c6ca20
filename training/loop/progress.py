"""Progress of training: its speed and the time left."""

import collections
import time

import keras
import rich.progress

from keras_transformer.training.loop.callbacks import UpdateCallback
from keras_transformer.training.loop.messages import duration


class Stopwatch(keras.callbacks.Callback):
    """Callback that measures the time of updates, without that of other callbacks between them.

    Validations, checkpoints, plots and callbacks of the user are not included. It must be the first
    callback, so that it stops before any other one begins.

    Args:
        now: Function that returns the time in seconds.

    Attributes:
        seconds: Time of all updates so far.
    """

    def __init__(self, now=time.monotonic):
        super().__init__()
        self.now = now
        self.seconds = 0.0
        self._begin = 0.0

    def on_train_batch_begin(self, batch, logs=None) -> None:
        self._begin = self.now()

    def on_train_batch_end(self, batch, logs=None) -> None:
        self.seconds += self.now() - self._begin


class Progress(UpdateCallback):
    """Shows loss, tokens (or examples) per second and the time left.

    On a terminal it is a bar; in a file or a CI log, a line every `seconds`.

    The speed counts the updates alone. The time left includes all updates, validations and
    checkpoints to come; a validation or a checkpoint is expected to take as long as the last one,
    and is not counted before the first one.

    Args:
        start, total: See `UpdateCallback`.
        console: A `rich.console.Console`.
        stopwatch: The `Stopwatch` of the updates.
        pauses: The `Recurring` callbacks between the updates.
        seconds: Seconds between two lines.
    """

    def __init__(self, start, total, console, stopwatch, pauses=(), seconds=10.0):
        super().__init__(start, total)
        self.console = console
        self.stopwatch = stopwatch
        self.pauses = pauses
        self.seconds = seconds
        self._bar = None
        self._marks = collections.deque()  # (time, update, tokens) of the last 20 seconds
        self._last_line = 0.0

    def on_train_begin(self, logs=None) -> None:
        self._last_line = self.stopwatch.now()
        if self.console.is_terminal:
            columns = [rich.progress.BarColumn(), rich.progress.TextColumn("{task.description}")]
            self._bar = rich.progress.Progress(*columns, console=self.console)
            self._task = self._bar.add_task("starting", total=self.total, completed=self.start)
            self._bar.start()

    def on_train_end(self, logs=None) -> None:
        self.close()

    def close(self) -> None:
        """Restores the terminal; may be called twice."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def on_update(self, update, logs) -> None:
        worked, now = self.stopwatch.seconds, self.stopwatch.now()
        self._marks.append((worked, update, logs[self.model.unit]))
        while worked - self._marks[0][0] > 20 and len(self._marks) > 2:
            self._marks.popleft()
        if self._bar is not None:
            self._bar.update(self._task, completed=update, description=self._text(update, logs))
        elif now - self._last_line >= self.seconds or update == self.total:
            self._last_line = now
            self.console.print(self._text(update, logs), soft_wrap=True, highlight=False)

    def _text(self, update, logs):
        speed, left = "", ""
        (then, first, before), (now, last, seen) = self._marks[0], self._marks[-1]
        if last > first:
            speed = f"  {(seen - before) / (now - then):,.0f} {self.model.unit}/s"
            seconds = (self.total - last) * (now - then) / (last - first)
            seconds += sum(pause.seconds_left() for pause in self.pauses)
            left = f"  {duration(seconds)} left"
        return f"update {update:,} of {self.total:,}  loss {logs['loss']:.3f}{speed}{left}"
