"""Windows over a series: which of them makes the output of which step."""

import numpy as np


def window_of(step, length, scored):
    """Returns where the window begins that makes the output of a step.

    The first window makes those of all its steps, of which the earliest know little of the past;
    every later one begins `scored` steps after the one before it and makes those of its last
    `scored` steps. So it is the same whatever comes after the step.

    Args:
        step: Number of the step, counted from 0.
        length: Steps in a window.
        scored: See above; at most `length`.
    """
    return 0 if step < length else ((step - length) // scored + 1) * scored


def cut_windows(rows, starts, length):
    """Returns windows over rows, those after the last row filled with zeros.

    No step sees what comes after it, so that what a window is filled with changes nothing before.

    Args:
        rows: `[N, ...]`.
        starts: Where the windows begin, each below N.
        length: Steps in a window T.

    Returns:
        `[windows, T, ...]`.
    """
    missing = max(0, max(starts) + length - len(rows))
    rows = np.concatenate([rows, np.zeros((missing, *rows.shape[1:]), rows.dtype)])
    return np.stack([rows[start : start + length] for start in starts])


class Windowed:
    """A series that grows, and the outputs of its steps, each from the window of `window_of`.

    Args:
        run: Function of windows `[B, T, F]` to outputs `[B, T]`.
        num_inputs: Numbers of a step F.
        length: Steps in a window T.
        scored: See `window_of`.
        batch_size: Windows at a time.
    """

    def __init__(self, run, num_inputs, length, scored, batch_size=64):
        self._run, self._batch_size, self.num_inputs = run, batch_size, num_inputs
        self._length, self._scored = length, scored
        self._rows, self._first = np.zeros((0, num_inputs), np.float32), 0

    def extend(self, rows):
        """Adds steps; returns their outputs, `[N]`, float32.

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
        """Drops the steps before a window that will be the next."""
        self._rows = self._rows[max(0, start - self._first) :]
        self._first = max(start, self._first)
