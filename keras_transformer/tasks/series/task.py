"""The task of time series: from what is measured at every step to a target at every step."""

import time

import numpy as np

from keras_transformer.config import SeriesConfig
from keras_transformer.tasks.series.efficiency import kling_gupta, nash_sutcliffe
from keras_transformer.tasks.task import LOSS, Figure, Survey, Task


class TimeSeriesTask(Task):
    """A target that follows from inputs at this and earlier steps, by a `SeriesRegressor`."""

    name = "time_series"
    columns = ("inputs", "target")
    sources = ("series",)
    reads_text = False
    config_class = SeriesConfig
    figures = {
        "loss": LOSS,
        "kge": Figure("KGE'", higher_is_better=True),
        "nse": Figure("NSE", higher_is_better=True),
    }
    unit = "steps"
    unused = (
        "vocabulary",
        "training.subword_sampling",
        "training.validate_sentences",
        "training.label_smoothing",
        "training.r_drop",
    )

    def pipeline_class(self):  # noqa: D102
        from keras_transformer.tasks.series.simulator import SeriesSimulator

        return SeriesSimulator

    def survey(self, rows, facts=None):
        """Returns mean and standard deviation of the inputs and of the target in training.

        Those of the inputs are of all days of the training split and of the window before it; with
        `snow` those of water and snow take the place of those of precipitation and temperature.
        """
        inputs, target = (
            np.array(column, np.float64) for column in zip(*rows.as_numpy_iterator(), strict=True)
        )
        observed = target[np.isfinite(target)]
        if not len(observed):
            raise ValueError("the training split must have a step whose target is known.")
        if snow := (facts or {}).get("snow"):
            from keras_transformer.layers.inputs.snow import SnowAccount

            places = [facts["inputs"].index(name) for name in snow]
            account = SnowAccount(*places, max_length=len(inputs), dtype="float32")
            inputs = np.array(account(inputs[None].astype(np.float32))[0], np.float64)
        scales = [float(scale) or 1.0 for scale in inputs.std(axis=0)]
        fields = {
            "input_mean": tuple(map(float, inputs.mean(axis=0))),
            "input_scale": tuple(scales),
            "target_mean": float(observed.mean()),
            "target_scale": float(observed.std()) or 1.0,
        }
        return Survey(fields)

    def samples(self, inputs):
        """Returns one series: an export cuts it into windows."""
        return [np.stack(inputs)]

    def evaluate(self, pipeline, columns):
        """Simulates a series and compares it with what was observed.

        Args:
            pipeline: A `SeriesSimulator`.
            columns: The inputs of all steps, `[N, F]`, or lines of a CSV file; and the target of
                each, a number or a line, `nan` or an empty line where it is not known.

        Returns:
            Dictionary of `kge`, KGE' of Kling et al. (2012); `nse`, that of Nash and Sutcliffe;
            `steps`, the number of steps whose target is known, over which both are; and `seconds`.
        """
        inputs, target = columns[0], np.array([_number(value) for value in columns[1]])
        begin = time.perf_counter()
        if inputs and isinstance(inputs[0], str):
            answers = pipeline.lines()(range(1, len(inputs) + 1), inputs)
            simulated = np.array([_number(answer.text) for (answer,) in answers])
        else:
            simulated = pipeline(inputs)
        seconds = time.perf_counter() - begin
        known = np.isfinite(target)
        if not known.any():
            raise ValueError("There must be at least one step whose target is known.")
        return {
            "kge": kling_gupta(target[known], simulated[known]),
            "nse": nash_sutcliffe(target[known], simulated[known]),
            "steps": int(known.sum()),
            "seconds": round(seconds, 3),
        }


def _number(value):
    """A number, of a line as well; not a number where a line has none, such as a header."""
    try:
        return float(value)
    except ValueError:
        return float("nan")
