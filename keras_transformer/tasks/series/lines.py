"""Lines of a CSV file as the steps of a series, one after the other."""

import dataclasses
import math

import numpy as np


@dataclasses.dataclass(frozen=True)
class Step:
    """What is answered to a line.

    Args:
        text: The number, or for a header the name of the target.
        truncated: Always `False`: nothing is cut.
        score: A number has none.
    """

    text: str
    truncated: bool = False
    score: float = math.nan


class SeriesLines:
    """Answers lines in their order: each is a step of one series, whose past it knows.

    The first line may be a header: then the inputs are the columns of their names, and what else
    there is, such as dates, is not read. Without one every line holds the inputs in their order.

    Args:
        series: A `Windowed`.
        inputs: Names of the inputs.
        target: Name of the target.

    Call arguments:
        numbers: Numbers of the lines, counted from 1.
        texts: The lines.
        batch_size: Not used: a series is one example.

    Returns:
        For each line a list of one `Step`.

    Raises:
        ValueError: If a line has too few columns or something other than a number. One line, which
            names it.
    """

    blank = False  # an empty line is not a step
    strict = True  # a step that is missing would change all later answers

    def __init__(self, series, inputs, target):
        self._series, self._inputs, self._target = series, inputs, target
        self._places, self._width = list(range(len(inputs))), len(inputs)

    def __call__(self, numbers, texts, batch_size=None):
        answers, rows = [], []
        for number, text in zip(numbers, texts, strict=True):
            cells = [cell.strip() for cell in text.split(",")]
            if number == 1 and not all(map(_is_number, cells)) and self._read_header(cells):
                answers.append([Step(self._target)])
                continue
            rows.append(self._numbers(number, cells))
        outputs = self._series.extend(np.reshape(rows, (-1, len(self._inputs))))
        return answers + [[Step(f"{value:.6g}")] for value in outputs]

    def _read_header(self, cells):
        """Takes the places of the inputs from a header; returns whether it is one."""
        missing = [name for name in self._inputs if name not in cells]
        if len(missing) == len(self._inputs):
            return False
        if missing:
            raise ValueError(
                f"line 1: the header must have the columns {', '.join(self._inputs)}. Missing: "
                f"{', '.join(missing)}."
            )
        self._places = [cells.index(name) for name in self._inputs]
        self._width = len(cells)
        return True

    def _numbers(self, number, cells):
        if len(cells) != self._width:
            raise ValueError(
                f"line {number}: must have {self._width} columns with commas between them, "
                f"{', '.join(self._inputs)} among them. Received: {len(cells)}."
            )
        values = []
        for name, place in zip(self._inputs, self._places, strict=True):
            if not _is_number(cells[place]):
                raise ValueError(
                    f"line {number}: {name} must be a number. Received: {cells[place]!r}."
                )
            values.append(float(cells[place]))
        return values


def _is_number(text):
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
