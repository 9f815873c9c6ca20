"""A model of time series in use: what is measured at every step to the target at every step."""

import numpy as np
import tensorflow as tf

from keras_transformer.models.series_regressor import SeriesRegressor
from keras_transformer.tasks.series.codec import SeriesCodec
from keras_transformer.tasks.single_pass.pipeline import SinglePass


class SeriesSimulator(SinglePass):
    """A trained `SeriesRegressor`.

    Args:
        model: A `SeriesRegressor`, or a list of several: see `Pipeline`. Each scales its inputs and
            its target by itself.

    Raises:
        TypeError: If it is another model.
        ValueError: If several have other inputs, another target or other windows.

    Example:
        from keras_transformer import SeriesSimulator
        SeriesSimulator.from_run("runs/runoff")([[3.1, 12.5, 2.0], [0.0, 14.1, 2.4]])
    """

    task = "time_series"
    model_class = SeriesRegressor
    request = ("series",)
    output = "target"
    codec_class = SeriesCodec

    def __init__(self, model):
        super().__init__(model)
        config = self.model.config
        self.codec = SeriesCodec(
            config.inputs,
            config.target,
            config.max_length,
            config.scored,
            config.target_scale,
            config.table,
        )
        self.check_models()

    def __call__(self, series, batch_size=64):
        """Returns the target at every step of one series, `[N]`, float32.

        Args:
            series: The inputs at every step, `[N, F]`, of any length. The first steps know little
                of what was before them: let a year, or whatever the window is, precede those that
                are of interest.
            batch_size: Windows at a time.

        Raises:
            ValueError: If its shape is another one or a number is not finite.
        """
        series, inputs = np.asarray(series, np.float32), self.codec.inputs
        shape = (len(series) if series.ndim else 0, len(inputs))
        if series.shape != shape or not np.isfinite(series).all():
            raise ValueError(
                f"`series` must be finite numbers [steps, {shape[1]}]: {', '.join(inputs)}. "
                f"Received: shape={series.shape}."
            )
        return self.codec.windowed(self.run, batch_size).extend(series)

    def run(self, series):
        """Returns the outputs of windows, a dictionary with the `target`, an array `[B, T]`.

        Args:
            series: `[B, T, F]`.
        """
        return self._responder()(series=tf.constant(series, tf.float32))

    def lines(self, warn=None):
        """Returns a `SeriesLines`: a series that begins, as lines of a CSV file.

        Args:
            warn: See `SeriesLines`.
        """
        return self.codec.lines(self.run, warn)
