"""The task of time series: inputs at every step to a target at every step."""

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.tasks.task import LOSS, Metric, Survey, Task
from keras_transformer.tasks.time_series.config import SeriesConfig
from keras_transformer.tasks.time_series.lines import read_targets
from keras_transformer.tasks.time_series.metrics import kling_gupta, nash_sutcliffe
from keras_transformer.text.lines import read_parallel


class TimeSeriesTask(Task):
    """Simulation of a target from inputs at this and earlier steps by a `SeriesRegressor`."""

    name = "time_series"
    columns = ("inputs", "target")
    sources = ("series",)
    training = "keras_transformer.training.tasks.time_series.training:TimeSeriesTraining"
    config_class = SeriesConfig
    metrics = {
        "loss": LOSS,
        "kge": Metric("KGE'", higher_is_better=True),
        "nse": Metric("NSE", higher_is_better=True),
    }
    unit = "steps"
    unused = (
        "vocabulary",
        "training.subword_sampling",
        "training.validate_sentences",
        "training.label_smoothing",
        "training.r_drop",
    )

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.time_series.pipeline import SeriesSimulator

        return SeriesSimulator

    def survey(self, rows, metadata=None) -> Survey:
        """Returns means and standard deviations of inputs and target, and a sentence on the steps.

        Inputs are taken from all steps of the training split and of the window before it. With
        `snow`, water and snow replace precipitation and temperature.
        """
        inputs, target = (
            np.array(column, np.float64) for column in zip(*rows.as_numpy_iterator(), strict=True)
        )
        observed = target[np.isfinite(target)]
        if not len(observed):
            raise ValueError("the training split must have at least one step with a known target.")
        metadata = metadata or {}
        if snow := metadata.get("snow"):
            from keras_transformer.tasks.time_series.snow import SnowAccount

            places = [metadata["inputs"].index(name) for name in snow]
            account = SnowAccount(*places, max_length=len(inputs), dtype="float32")
            inputs = np.array(account(inputs[None].astype(np.float32))[0], np.float64)
        scales = [float(scale) or 1.0 for scale in inputs.std(axis=0)]
        fields = {
            "input_mean": tuple(map(float, inputs.mean(axis=0))),
            "input_scale": tuple(scales),
            "target_mean": float(observed.mean()),
            "target_scale": float(observed.std()) or 1.0,
        }
        return Survey(fields, _sentences((metadata or {}).get("table")))

    def read_files(self, source, reference=None) -> Sequence[list]:
        """Returns lines of CSV files; columns that are not read may contain any bytes."""
        return read_parallel(source, reference, "surrogateescape")

    def samples(self, inputs) -> list:
        """Returns one series, which an export cuts into windows."""
        return [np.stack(inputs)]

    def evaluate(self, pipeline, columns) -> dict[str, Any]:
        """Simulates a series and compares it with the observed one.

        Args:
            pipeline: A `SeriesSimulator`.
            columns: The inputs of all steps, `[N, F]`, and the target of each, NaN if unknown; or
                both as lines of a CSV file, see `SeriesReader` and `read_targets`.

        Returns:
            Dictionary of `kge`, the KGE' of Kling et al. (2012); `nse`, the efficiency of Nash and
            Sutcliffe; `steps`, the number of steps with a known target, over which both are
            computed; for lines, if gaps are filled, `filled`, the number of filled steps; and
            `seconds`.
        """
        inputs, filled = columns[0], {}
        begin = time.perf_counter()
        if len(inputs) and isinstance(inputs[0], str):
            simulated, target, filled = _answer_lines(pipeline, *columns)
        else:
            simulated, target = pipeline(inputs), np.array(columns[1])
        seconds = time.perf_counter() - begin
        known = np.isfinite(target)
        if not known.any():
            raise ValueError("There must be at least one step with a known target.")
        return {
            "kge": kling_gupta(target[known], simulated[known]),
            "nse": nash_sutcliffe(target[known], simulated[known]),
            "steps": int(known.sum()),
            **filled,
            "seconds": round(seconds, 3),
        }


def _sentences(table):
    """Returns a sentence with the time between two steps and the number of filled steps."""
    if not table:
        return ()
    filled = f"; {table['filled']:,} steps were filled ({table['fill']})"
    return (f"Steps of {table['step']}{filled if table['fill'] else ''}.",)


def _answer_lines(pipeline, inputs, references):
    """Returns simulated and observed values, NaN for a header, and the number of filled steps."""
    codec, lines = pipeline.codec, pipeline.lines()
    target = np.array(read_targets(references, codec.target, codec.table))
    answers = [answer.text for (answer,) in lines(range(1, len(inputs) + 1), inputs)]
    header = answers[0] == codec.target
    if header and not math.isnan(target[0]):
        raise ValueError("reference, line 1: must be a header, as in the file of inputs.")
    simulated = np.array([math.nan] * header + [float(text) for text in answers[header:]])
    return simulated, target, {"filled": lines.filled} if codec.table.fill else {}
