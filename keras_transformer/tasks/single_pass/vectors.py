"""`Vector`, the result of models that represent an input by one vector."""

import dataclasses
from typing import Any

import numpy as np

from keras_transformer.tasks.single_pass.result import Result


@dataclasses.dataclass(frozen=True)
class Vector(Result):
    """The vector of an input.

    Args:
        values: Array `[D]`, float32.
        truncated: Whether a text was longer than the model's limit and was truncated.
    """

    values: np.ndarray = dataclasses.field(compare=False, repr=False)
    truncated: bool

    @property
    def text(self) -> str:
        """The numbers, separated by spaces, as `predict` writes them: no digit is lost."""
        return " ".join(map(str, self.values))

    @property
    def score(self) -> float:
        """0, the value of `score_of` for an equal direction."""
        return 0.0

    @property
    def numbers(self) -> np.ndarray:
        """The numbers."""
        return self.values

    def score_of(self, other: Any) -> float:
        """Returns the cosine distance of two vectors, from 0 to 2."""
        ours, theirs = (np.asarray(vector.values, "float64") for vector in (self, other))
        lengths = np.linalg.norm(ours) * np.linalg.norm(theirs)
        return float(1 - ours @ theirs / max(lengths, np.finfo("float64").tiny))
