"""The pipeline of time series: inputs at every step to the target at every step."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.tasks.single_pass.pipeline import SinglePass
from keras_transformer.tasks.time_series.codec import SeriesCodec
from keras_transformer.tasks.time_series.lines import SeriesLines
from keras_transformer.tasks.time_series.model import SeriesRegressor
from keras_transformer.tensors import Tensor


class SeriesSimulator(SinglePass):
    """A trained `SeriesRegressor` in use.

    Args:
        model: A `SeriesRegressor`, or a list of several; see `Pipeline`. Each model scales its
            inputs and its target itself.

    Raises:
        TypeError: If `model` is not a `SeriesRegressor`.
        ValueError: If several models differ in inputs, target or windows.

    Example:
        from keras_transformer.pipelines import SeriesSimulator
        SeriesSimulator.from_run("runs/runoff")([[3.1, 12.5, 2.0], [0.0, 14.1, 2.4]])
    """

    task = "time_series"
    model_class = SeriesRegressor
    request = ("series",)
    output = "target"
    codec_class = SeriesCodec

    def __init__(self, model: keras.Model | Sequence[keras.Model]):
        super().__init__(model)
        config = self.model.config
        self.codec = SeriesCodec(
            config.input.inputs,
            config.head.target,
            config.max_length,
            config.head.scored,
            config.head.target_scale,
            config.input.table,
        )
        self.check_models()

    def __call__(self, series: Any, search: Any = None, batch_size: int = 64) -> np.ndarray:
        """Returns the target at every step of one series, `[N]`, float32.

        Args:
            series: The inputs at every step, `[N, F]`, of any length. The model knows little of the
                past of the first steps: begin the series one window, for example a year, before
                the steps of interest.
            search: `None`: the model has no search.
            batch_size: Number of windows computed at a time.

        Raises:
            ValueError: If the shape is wrong or a number is not finite.
        """
        return super().__call__(series, search, batch_size)

    def run(self, series: Tensor) -> dict[str, Tensor]:
        """Returns a dictionary with the `target` of windows, an array `[B, T]`.

        Args:
            series: `[B, T, F]`.
        """
        return self._responder()(series=tf.constant(series, tf.float32))

    def lines(self, warn: Any = None) -> SeriesLines:
        """Returns a `SeriesLines`, which answers the lines of a CSV file from its beginning.

        Args:
            warn: See `SeriesLines`.
        """
        return self.codec.lines(self.run, warn)
