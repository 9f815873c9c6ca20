"""Windows over a series, and the assignment of each step to a window."""

import numpy as np


def window_of(step, length, scored) -> int:
    """Returns the first step of the window that computes the output of a step.

    The first window computes the outputs of all its steps; the earliest of them know little of the
    past. Every later window begins `scored` steps after the previous one and computes the outputs
    of its last `scored` steps. The window therefore does not depend on later steps.

    Args:
        step: Number of the step, counted from 0.
        length: Number of steps in a window.
        scored: Number of steps at the end of a window whose outputs are used, at most `length`.
    """
    return 0 if step < length else ((step - length) // scored + 1) * scored


def cut_windows(rows, starts, length) -> np.ndarray:
    """Returns windows over rows, padded with zeros after the last row.

    The padding does not affect the outputs, because a step does not see later steps.

    Args:
        rows: `[N, ...]`.
        starts: Indices of the windows' first rows, each below N.
        length: Number T of steps in a window.

    Returns:
        `[windows, T, ...]`.
    """
    missing = max(0, max(starts) + length - len(rows))
    rows = np.concatenate([rows, np.zeros((missing, *rows.shape[1:]), rows.dtype)])
    return np.stack([rows[start : start + length] for start in starts])


class Windowed:
    """A growing series with the outputs of its steps, each computed in its `window_of`.

    Args:
        run: Function from windows `[B, T, F]` to outputs `[B, T]`.
        num_inputs: Number F of inputs of a step.
        length: Number T of steps in a window.
        scored: See `window_of`.
        batch_size: Number of windows computed at a time.
    """

    def __init__(self, run, num_inputs, length, scored, batch_size=64):
        self._run, self._batch_size, self.num_inputs = run, batch_size, num_inputs
        self._length, self._scored = length, scored
        self._rows, self._first = np.zeros((0, num_inputs), np.float32), 0

    def extend(self, rows) -> np.ndarray:
        """Adds steps and returns their outputs, `[N]`, float32.

        Args:
            rows: `[N, F]`.
        """
        begin = self._first + len(self._rows)
        self._rows = np.concatenate([self._rows, np.asarray(rows, np.float32)])
        steps = range(begin, begin + len(rows))
        windows = [window_of(step, self._length, self._scored) for step in steps]
        starts = sorted(set(windows))
        outputs = {}
        for number in range(0, len(starts), self._batch_size):
            own = starts[number : number + self._batch_size]
            cut = cut_windows(self._rows, [start - self._first for start in own], self._length)
            outputs |= dict(zip(own, np.asarray(self._run(cut)), strict=True))
        self._forget(window_of(begin + len(rows), self._length, self._scored))
        values = [outputs[start][step - start] for step, start in zip(steps, windows, strict=True)]
        return np.array(values, np.float32)

    def _forget(self, start):
        """Drops the steps before the next window."""
        self._rows = self._rows[max(0, start - self._first) :]
        self._first = max(start, self._first)
