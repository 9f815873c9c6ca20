"""The learning curve of a run, drawn while it trains."""

import time

from keras_transformer.plots.curves import curve_figure
from keras_transformer.plots.figure import MatplotlibMissing, save_figure
from keras_transformer.training.loop.messages import say


class Curve:
    """Plot of a run's learning curve; if it cannot be drawn, training goes on.

    Args:
        run: The `Run`.
        history: The `History` of the run.
        task: The `Task` of the run.
        console: The console for messages if it cannot be drawn.
        draws: Whether this process draws the plot.
        every: Seconds between two plots during training; one takes about half a second.
    """

    def __init__(self, run, history, task, console, draws, every=30):
        self.run, self.history, self.task, self.console = run, history, task, console
        self.draws, self.every, self._last = draws, every, time.monotonic()

    def follow(self) -> None:
        """Draws the history so far, if the last plot is old enough."""
        if time.monotonic() - self._last >= self.every:
            self.draw()

    def draw(self) -> None:
        """Draws the history so far."""
        if not self.draws:
            return
        try:
            save_figure(curve_figure(self.history, self.task), self.run.curve)
        except MatplotlibMissing as error:
            self.draws = False
            say(self.console, f"{self.run.curve} will not be drawn: {error}")
        except OSError as error:
            reason = error.strerror or error
            say(self.console, f"{self.run.curve} cannot be written: {reason}.")
        self._last = time.monotonic()
