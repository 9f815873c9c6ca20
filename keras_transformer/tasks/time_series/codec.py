"""The codec of time series: windows of inputs to the target at every step."""

import dataclasses
import json
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.single_pass.codec import Codec
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.result import Result
from keras_transformer.tasks.time_series.lines import SeriesLines
from keras_transformer.tasks.time_series.reader import SeriesReader
from keras_transformer.tasks.time_series.table_format import TableFormat
from keras_transformer.tasks.time_series.windows import Windowed, cut_windows
from keras_transformer.tensors import Tensor

RULE = (
    "Each row: a window, with the inputs of each step in their order and their own units; steps "
    "after the last may have any values and do not affect earlier steps."
)


@dataclasses.dataclass(frozen=True)
class Simulation(Result):
    """The target at every step of a window.

    Args:
        values: Array `[T]`, float32.
    """

    values: np.ndarray
    truncated = False

    @property
    def numbers(self) -> np.ndarray:
        """The target at every step."""
        return self.values

    @property
    def text(self) -> str:
        """The target at the last step."""
        return f"{self.numbers[-1]:.4g}"

    @property
    def score(self) -> float:
        """0, the value of `score_of` for equal numbers."""
        return 0.0

    def score_of(self, other) -> float:
        """Returns the root mean square error in units of the other numbers' standard deviation."""
        error = np.sqrt(np.mean((self.numbers - other.numbers) ** 2))
        return float(error / max(np.std(other.numbers), 1e-6))


class SeriesCodec(Codec):
    """The codec of a model that reads `series`, `[B, T, F]`.

    Args:
        inputs: Names of the inputs.
        target: Name of the target.
        window: Number of steps in a window.
        scored: Number of steps at the end of a window whose outputs are used.
        scale: Standard deviation of the target.
        table: The `TableFormat` of lines.
    """

    verb, example, number = "simulate", "window", "target"
    simulates = True
    rule = RULE
    own_metadata = ("scale", "table.filled")
    nothing = {"target": 0.0}
    # Recurrent layers accumulate rounding errors over hundreds of steps.
    max_score_loss = {"none": 0.0, "float16": 0.02, "int8": 0.1, "int4": 0.2}
    score_unit = "standard deviations"

    def __init__(self, inputs, target, window, scored, scale=1.0, table=None):
        self.inputs, self.target = tuple(inputs), target
        self.window, self.scored, self.scale = window, scored, scale
        self.table = table or TableFormat()
        self.tolerance = 1e-3 * scale
        windows = tf.TensorSpec([None, None, len(self.inputs)], tf.float32, name="series")
        self.request_specs = {"series": windows}

    @classmethod
    def is_one(cls, examples) -> bool:
        """Returns whether `examples` is a window, an array `[T, F]`."""
        return getattr(examples, "ndim", None) == 2

    @classmethod
    def check(cls, examples) -> list:
        """Returns windows as a list of arrays `[T, F]`."""
        if isinstance(examples, (str, bytes)) or not hasattr(examples, "__iter__"):
            raise TypeError(f"`examples` must be a list of windows. Received: {examples!r}.")
        return [np.asarray(example, np.float32) for example in examples]

    def check_samples(self, examples) -> list:
        """Returns windows to check an export with, cut from series or from the lines of one."""
        if examples and isinstance(examples[0], str):
            examples = [_steps(examples, self.inputs, self.table)]
        windows = []
        for series in super().check_samples(examples):
            starts = range(0, len(series), self.window)
            windows += list(cut_windows(series, starts, self.window))
        return windows

    @staticmethod
    def shown(example) -> str:  # noqa: D102
        return f"a window that begins with {example[0].tolist()}"

    @classmethod
    def request(cls, examples) -> dict[str, Tensor]:
        """Returns `series`; all windows must have the same length."""
        if len({len(example) for example in examples}) > 1:
            raise ValueError("`examples` of one batch must be windows of the same length.")
        return {"series": tf.constant(np.stack(examples), tf.float32)}

    def encode(self, series) -> tuple[dict[str, Tensor], dict[str, Tensor]]:  # noqa: D102
        return {"series": series}, {}

    def outputs(self, prediction) -> dict[str, Any]:  # noqa: D102
        return {"target": prediction}

    def answers(self, outputs, rest) -> dict[str, Tensor]:  # noqa: D102
        return outputs

    @classmethod
    def results(cls, answers) -> list[Simulation]:
        """Returns a `Simulation` for each window."""
        return [Simulation(row) for row in answers["target"]]

    def input_specs(self, rows=None, length=None) -> dict[str, tf.TensorSpec]:  # noqa: D102
        shape = [rows, self.window, len(self.inputs)]
        return {"series": tf.TensorSpec(shape, tf.float32, name="series")}

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        return {
            "inputs": list(self.inputs),
            "target": self.target,
            "window": self.window,
            "scored": self.scored,
            "scale": self.scale,
            "series": self.rule,
            "table": dataclasses.asdict(self.table),
        }

    def line_metadata(self) -> dict[str, Any]:
        """Returns `metadata`, which includes the names of the columns of lines."""
        return self.metadata()

    @classmethod
    def of_lines(cls, metadata) -> Any:  # noqa: D102
        return cls.from_metadata(metadata, None)

    @classmethod
    def from_metadata(cls, metadata, tokenizers) -> "SeriesCodec":  # noqa: D102
        names = ("inputs", "target", "window", "scored", "scale")
        return cls(*(metadata[name] for name in names), TableFormat(**metadata.get("table", {})))

    def windowed(self, run, batch_size=64) -> Windowed:
        """Returns a `Windowed` for a series, which is still empty.

        Args:
            run: Function from `series`, `[B, T, F]`, to a dictionary with the `target`, `[B, T]`.
            batch_size: Number of windows computed at a time.
        """
        return Windowed(
            lambda windows: run(series=windows)["target"],
            len(self.inputs),
            self.window,
            self.scored,
            batch_size,
        )

    def simulate(self, run, series, batch_size=64) -> np.ndarray:
        """Returns the target at every step of one series, `[N]`, float32.

        Args:
            run: See `windowed`.
            series: The inputs at every step, `[N, F]`, of any length.
            batch_size: Number of windows computed at a time.

        Raises:
            ValueError: If the shape is wrong or a number is not finite.
        """
        series = np.asarray(series, np.float32)
        shape = (len(series) if series.ndim else 0, len(self.inputs))
        if series.shape != shape or not np.isfinite(series).all():
            raise ValueError(
                f"`series` must be finite numbers [steps, {shape[1]}]: {', '.join(self.inputs)}. "
                f"Received: shape={series.shape}."
            )
        return self.windowed(run, batch_size).extend(series)

    def lines(self, run, warn=None) -> SeriesLines:
        """Returns a `SeriesLines`, which answers the lines of a CSV file from its beginning.

        Args:
            run: See `windowed`.
            warn: See `SeriesLines`.
        """
        return SeriesLines(self.windowed(run), self.inputs, self.target, self.table, warn)

    def guide(self, example) -> Guide:  # noqa: D102
        names = ", ".join(f"`{name}`" for name in self.inputs)
        return Guide(
            purpose=f"Simulates the {self.target} at every step from {names}",
            request={"series": json.dumps([np.round(example[:3], 4).tolist()])},
            axes={"series": f"B, T, {len(self.inputs)}", "target": "B, T"},
            notes=[
                f"B: number of windows in the request. T: number of steps of a window, at most "
                f"{self.window}. The inputs of a step are {names}, in this order and in their own "
                "units.",
                f"`target` is the {self.target} at every step. Use the last {self.scored} steps of "
                "a whole window: the others warm the model up. A step depends only on itself and "
                "on earlier steps.",
            ],
        )


def _steps(lines, inputs, table):
    """Returns the steps in lines of a CSV file, with or without a header."""
    reader = SeriesReader(inputs, table)
    begin = 1 if reader.read_header(lines[0]) else 0
    rows = [
        reader.read(line, f"line {number}")
        for number, line in enumerate(lines[begin:], start=begin + 1)
    ]
    if not rows:
        raise ValueError("`examples` must have at least one step. Received: only a header.")
    return np.concatenate(rows).astype(np.float32)
