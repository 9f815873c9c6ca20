"""A model of time series in use: what is measured at every step to the target at every step."""

import numpy as np
import tensorflow as tf

from keras_transformer.models.series_regressor import SeriesRegressor
from keras_transformer.tasks.pipeline import Pipeline
from keras_transformer.tasks.series.lines import SeriesLines
from keras_transformer.tasks.series.windows import Windowed


class SeriesSimulator(Pipeline):
    """A trained `SeriesRegressor`.

    Args:
        model: A `SeriesRegressor`.

    Raises:
        TypeError: If it is another model.

    Attributes:
        inputs: Names of the inputs.
        target: Name of the target.
        window: Steps in a window, of which the last `scored` are used.

    Example:
        from keras_transformer import SeriesSimulator
        SeriesSimulator.from_run("runs/runoff")([[3.1, 12.5, 2.0], [0.0, 14.1, 2.4]])
    """

    task = "time_series"
    model_class = SeriesRegressor
    output = "target"

    def __init__(self, model):
        super().__init__(model)
        config = model.config
        self.inputs, self.target = config.inputs, config.target
        self.window, self.scored = config.max_length, config.scored
        windows = tf.TensorSpec([None, None, config.num_inputs], tf.float32, name="series")
        self._run = tf.function(self.outputs, input_signature=[windows], autograph=False)

    def outputs(self, series):
        """Returns the target at every step, `[B, T]`, in a graph.

        Args:
            series: The inputs at every step, `[B, T, F]`, float32.
        """
        return self.model(series, training=False)

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
        series = np.asarray(series, np.float32)
        shape = (len(series) if series.ndim else 0, len(self.inputs))
        if series.shape != shape or not np.isfinite(series).all():
            raise ValueError(
                f"`series` must be finite numbers [steps, {shape[1]}]: {', '.join(self.inputs)}. "
                f"Received: shape={series.shape}."
            )
        return self.windowed(batch_size).extend(series)

    def windowed(self, batch_size=64):
        """Returns a `Windowed`: a series that begins."""
        return Windowed(
            lambda windows: self._run(tf.constant(windows)),
            len(self.inputs),
            self.window,
            self.scored,
            batch_size,
        )

    def lines(self):
        """Returns a `SeriesLines`: a series that begins, as lines of a CSV file."""
        return SeriesLines(self.windowed(), self.inputs, self.target)
