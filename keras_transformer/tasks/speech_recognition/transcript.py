"""Result of a model that recognises speech."""

import dataclasses
from typing import Any

import numpy as np

from keras_transformer.tasks.single_pass.codec import Choice
from keras_transformer.tasks.speech_recognition.segments import Segment


@dataclasses.dataclass(frozen=True)
class Transcript(Choice):
    """The text that a model recognises in a recording.

    Args:
        transcript: The text.
        log_probability: Sum of the log-probabilities of the tokens, including the end token; in
            beam search, divided by the length penalty; with `BestPath`, that of the path. For a
            recording in several windows, their sum.
        length: Number of tokens, including the end token.
        truncated: Whether the recording was longer than the model's limit and was cut.
        language: Code of the language with which the output begins, chosen or detected. `None`: the
            model has no languages.
        segments: A `Segment` for each part of the text between two timestamps, in order; empty
            without timestamps.
        complete: Whether the output ended before its maximum length, in every window. `False`: text
            is missing, or the model repeated itself. Always `True` for exports, which do not report
            it.
        terms: How many log-probabilities `log_probability` adds up, over the length penalty: see
            `Search.terms`. `None`: it is `length`, as for exports, which do not report it.
    """

    transcript: str
    log_probability: float
    length: int
    truncated: bool = False
    language: str | None = None
    segments: tuple[Segment, ...] = ()
    complete: bool = dataclasses.field(default=True, compare=False)
    terms: float | None = dataclasses.field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.terms is None:
            object.__setattr__(self, "terms", self.length)

    @property
    def text(self) -> str:
        """The text, as `predict` writes it."""
        return self.transcript

    @property
    def score(self) -> float:
        """The log-probability."""
        return self.log_probability

    @property
    def numbers(self) -> np.ndarray:
        """The log-probability, `[1]`."""
        return np.array([self.log_probability])

    def gap(self, other: Any) -> float:
        """Returns the difference of two scores, for each log-probability that this one adds up."""
        return super().gap(other) / max(self.terms, 1)

    def score_of(self, other: Any) -> float:
        """Returns this result's own score: it has no score of another text."""
        return self.score

    def score_error(self, other: Any) -> float:
        """Returns `gap`: errors of the tokens add up, so that they are averaged."""
        return self.gap(other)

    def is_tied(self, other: Any, tolerance: float) -> bool:
        """Returns whether the two scores differ by at most twice the tolerance; see `gap`."""
        return self.gap(other) <= 2 * tolerance
