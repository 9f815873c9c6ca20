"""Training of models of time series."""

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.fields import Series
from keras_transformer.fields.field import Field
from keras_transformer.tasks.time_series.windows import cut_windows
from keras_transformer.tensors import Tensor
from keras_transformer.training.tasks.task import Training
from keras_transformer.training.tasks.time_series.efficiency import (
    KlingGupta,
    NashSutcliffe,
    ScaledSquaredError,
)


class TimeSeriesTraining(Training):
    """Training on windows of a series with the squared error of the steps that count.

    A batch is (series [B, T, F], labels [B, T, 2]), both float32. The labels of a step are its
    target, and 1 if the step counts, otherwise 0. Steps that warm the model up and steps with an
    unknown target do not count, nor do rows of padding, which are zeros.
    """

    row_settings = ("window", "scored", "stride")

    @property
    def fields(self) -> dict[str, Field]:  # noqa: D102
        window = self.config.max_length
        return {
            "series": Series(window, len(self.config.input.inputs)),
            "labels": Series(window, 2),
        }

    def rows(self, data, split, settings) -> tf.data.Dataset:
        """Returns the windows of a split.

        In training one begins every `settings.stride` steps; in other splits every step counts
        exactly once.
        """
        rows = data.rows(split).as_numpy_iterator()
        inputs, target = (np.array(column, np.float32) for column in zip(*rows, strict=True))
        stride = settings.stride if split == "train" else settings.scored
        columns = windows(inputs, target, settings.window, settings.scored, stride)
        with tf.device("CPU:0"):
            return tf.data.Dataset.from_tensor_slices(tuple(columns))

    def assemble(self, series, labels) -> tuple:  # noqa: D102
        return series, labels

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        return ScaledSquaredError(self.config.head.target_scale)

    def metrics(self) -> list[keras.Metric]:  # noqa: D102
        return [KlingGupta(), NashSutcliffe()]

    def weigh(self, inputs, labels) -> Tensor:
        """Returns 1 for each step that counts, otherwise 0."""
        return labels[..., 1]


def windows(inputs, target, length, scored, stride) -> list[np.ndarray]:
    """Cuts a series into windows.

    The first window begins at the first step, and all of its steps count. Each other window begins
    `stride` steps after the previous one, and its last `scored` steps count. Every step counts at
    least once if `stride` is at most `scored`, and exactly once if both are equal.

    Args:
        inputs: Inputs of each step, `[N, F]`.
        target: Target of each step, `[N]`; NaN where it is unknown.
        length: Length T of a window, in steps.
        scored: Number of steps that count in a window, except in the first.
        stride: Steps between the beginnings of two windows.

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
        raise ValueError("the data must contain a step with a known target. Received: none.")
    return [cut_windows(inputs, starts, length), labels]
