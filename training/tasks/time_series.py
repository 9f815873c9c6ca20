"""The training of models of time series."""

import numpy as np
import tensorflow as tf

from keras_transformer.fields import Series
from keras_transformer.tasks.series.windows import cut_windows
from keras_transformer.training.losses.efficiency import (
    KlingGupta,
    NashSutcliffe,
    ScaledSquaredError,
)
from keras_transformer.training.tasks.task import Training


class TimeSeriesTraining(Training):
    """Windows over a series; the loss is the squared error of the steps that count.

    A batch is (series [B, T, F], labels [B, T, 2]), both float32; of each step a label is the
    target, and 1 if it counts or 0 if not: steps that warm the model up, steps whose target is not
    known, and rows of padding, which are zeros.
    """

    row_settings = ("window", "scored", "stride")

    @property
    def fields(self):  # noqa: D102
        window = self.config.max_length
        return {"series": Series(window, len(self.config.inputs)), "labels": Series(window, 2)}

    def rows(self, data, split, settings):
        """Returns windows over a split: in training one every `settings.stride` steps, otherwise
        windows that count every step once.
        """
        rows = data.rows(split).as_numpy_iterator()
        inputs, target = (np.array(column, np.float32) for column in zip(*rows, strict=True))
        stride = settings.stride if split == "train" else settings.scored
        columns = windows(inputs, target, settings.window, settings.scored, stride)
        with tf.device("CPU:0"):
            return tf.data.Dataset.from_tensor_slices(tuple(columns))

    def assemble(self, series, labels):  # noqa: D102
        return series, labels

    def loss(self, settings):  # noqa: D102
        return ScaledSquaredError(self.config.target_scale)

    def metrics(self):  # noqa: D102
        return [KlingGupta(), NashSutcliffe()]

    def weigh(self, inputs, labels):
        """Returns 1 for each step that counts, and 0 for the others."""
        return labels[..., 1]


def windows(inputs, target, length, scored, stride):
    """Cuts a series into windows.

    The first window begins at the first step and counts all of its steps; others begin `stride`
    steps after the one before and count the last `scored` of theirs. All steps count at least once
    if `stride` is at most `scored`, and exactly once if it is equal.

    Args:
        inputs: `[N, F]`.
        target: `[N]`, not a number where it is not known.
        length: Steps of a window T.
        scored: See above.
        stride: See above.

    Returns:
        Inputs `[windows, T, F]` and labels `[windows, T, 2]`: see `TimeSeriesTraining`.

    Raises:
        ValueError: If no step counts.
    """
    starts = list(range(0, max(1, len(inputs) - length + scored), stride))
    known = np.isfinite(target)
    labels = np.stack([np.where(known, target, 0), known], axis=1).astype(np.float32)  # [N, 2]
    labels = cut_windows(labels, starts, length)
    labels[1:, : length - scored] = 0
    if not labels[..., 1].any():
        raise ValueError("the data must have a step whose target is known. Received: none.")
    return [cut_windows(inputs, starts, length), labels]
