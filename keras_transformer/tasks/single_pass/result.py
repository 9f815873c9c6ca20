"""Results of models that answer in one pass, and how two of them are compared."""

import abc
from typing import Any

import numpy as np

TINY = np.finfo(np.float32).tiny


class Result(abc.ABC):
    """An answer and the numbers that it was derived from.

    Attributes:
        truncated: Whether the input was longer than the model's limit and was truncated.
    """

    @property
    @abc.abstractmethod
    def text(self) -> str:
        """The answer as a string, as `predict` writes it."""

    @property
    def choice(self) -> str:
        """The part of the text that a comparison of two models compares, by default all of it."""
        return self.text

    @property
    @abc.abstractmethod
    def score(self) -> float:
        """Confidence of the model: the natural logarithm of a probability."""

    @property
    @abc.abstractmethod
    def numbers(self) -> np.ndarray:
        """Array of the model's outputs for the example; arrays of equal answers have one shape."""

    def gap(self, other: "Result") -> float:
        """Returns the largest difference between the numbers of two results for an example.

        It is NaN if their shapes differ.
        """
        ours, theirs = self.numbers, other.numbers
        if ours.shape != theirs.shape:
            return float("nan")
        return float(np.max(np.abs(ours - theirs), initial=0.0))

    @abc.abstractmethod
    def score_of(self, other: "Result") -> float:
        """Returns the score of another result's answer by the numbers of this result."""

    def score_error(self, other: "Result") -> float:
        """Returns the error of the score that another result gives to this result's answer.

        Its unit is the codec's `score_unit`. It is NaN if the numbers have other shapes.
        """
        if self.numbers.shape != other.numbers.shape:
            return float("nan")
        return abs(self.score - other.score_of(self))

    def further_gaps(self, other: "Result") -> dict[str, float]:
        """Returns the differences of numbers besides `numbers`, by name; by default there are none.

        Args:
            other: Another result for the same example.
        """
        return {}

    def agrees(self, other: "Result", tolerance: float) -> bool:
        """Returns whether two results have the same answer, by default equal numbers.

        Args:
            other: Another result for the same example.
            tolerance: Maximum difference of two equal numbers.
        """
        return self.gap(other) <= tolerance


class Choice(Result):
    """A `Result` chosen among several: nearly equal numbers may lead to different choices.

    Attributes:
        probabilities: Array, float32, of probabilities by which it was chosen.
    """

    probabilities: np.ndarray

    @property
    def score(self) -> float:
        """The logarithm of the probability of the choice; see `score_of`."""
        return self.score_of(self)

    @property
    def numbers(self) -> np.ndarray:
        """The probabilities."""
        return self.probabilities

    def agrees(self, other: "Choice", tolerance: float) -> bool:
        """Returns whether both results have made the same choice, whatever their numbers are."""
        return self.choice == other.choice

    @abc.abstractmethod
    def is_tied(self, other: "Choice", tolerance: float) -> bool:
        """Returns whether an error of `tolerance` could lead to the other result's answer."""


def log_of(probability) -> Any:
    """Returns the natural logarithm of a probability or an array of them; it is finite for 0."""
    return np.log(np.maximum(probability, TINY))
