"""Result of a model that recognises speech."""

import dataclasses
from typing import Any

import numpy as np

from keras_transformer.tasks.results import COMPLETE
from keras_transformer.tasks.single_pass.result import Choice
from keras_transformer.tasks.speech_recognition.segments import Segment, Word
from keras_transformer.tasks.speech_recognition.silence import NUMBERS, REPEATED, compression_ratio
from keras_transformer.tasks.speech_recognition.timestamps import read_segments


@dataclasses.dataclass(frozen=True)
class Window:
    """A window of a recording that is longer than a model's limit.

    Args:
        start, end: Time in the recording, in seconds.
        text: The text, of which the next window may repeat the end.
        no_speech, mean_log_probability, temperature: See `Transcript`.
    """

    start: float
    end: float
    text: str
    no_speech: float | None = None
    mean_log_probability: float | None = None
    temperature: float = 0.0


@dataclasses.dataclass(frozen=True)
class Transcript(Choice):
    """The text that a model recognises in a recording.

    Args:
        transcript: The text.
        log_probability: Sum of the log-probabilities of the tokens, including the end token; in
            beam search, divided by the length penalty; with `BestPath`, that of the path. For a
            recording in several windows, their sum.
        length: Number of tokens, including the end token.
        truncated: Whether the recording was longer than the model's limit and was truncated.
        language: Code of the language with which the output begins, chosen or detected. `None`: the
            model has no languages.
        segments: A `Segment` for each part of the text between two timestamps, in order; empty
            without timestamps.
        complete: Whether the output ended before its maximum length, in every window. `False`: text
            is missing, or the model repeated itself.
        terms: How many log-probabilities `log_probability` adds up, over the length penalty: see
            `Search.terms`. `None`: it is `length`, as for exports, which do not report it.
        no_speech: Probability that nobody speaks, from 0 to 1, before the first token; in several
            windows, the smallest one. `None`: the model does not compute it.
        mean_log_probability: Mean log-probability of a token, in nats, among the tokens that the
            rules of the model allow; in several windows, of all tokens. A window for which it is
            below a threshold while `no_speech` is above another has no text. `None`: as above.
        windows: A `Window` for each window of a recording that has several, in order.
        compression_ratio_threshold: See `repeats`.
        temperature: Temperature of the attempt that counts, see `Fallback`; the largest one of
            several windows.
        words: A `Word` for each word, in order; empty unless they are requested.
        tokens: Token ids of the output, with its prompt and end. Empty for several windows, and
            for exports.
    """

    transcript: str
    log_probability: float
    length: int
    truncated: bool = False
    language: str | None = None
    segments: tuple[Segment, ...] = ()
    complete: bool = dataclasses.field(default=True, compare=False)
    terms: float | None = dataclasses.field(default=None, compare=False)
    no_speech: float | None = dataclasses.field(default=None, compare=False)
    mean_log_probability: float | None = dataclasses.field(default=None, compare=False)
    windows: tuple[Window, ...] = dataclasses.field(default=(), compare=False)
    compression_ratio_threshold: float = dataclasses.field(default=REPEATED, compare=False)
    temperature: float = dataclasses.field(default=0.0, compare=False)
    words: tuple[Word, ...] = dataclasses.field(default=(), compare=False)
    tokens: tuple[int, ...] = dataclasses.field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.terms is None:
            object.__setattr__(self, "terms", self.length)

    @property
    def text(self) -> str:
        """The text, as `predict` writes it."""
        return self.transcript

    @property
    def compression_ratio(self) -> float:
        """Bytes of the text over those of the compressed text; the largest of several windows."""
        texts = [window.text for window in self.windows] or [self.transcript]
        return max(map(compression_ratio, texts))

    @property
    def repeats(self) -> bool:
        """`True` if the text repeats itself: `compression_ratio` is above the threshold."""
        return self.compression_ratio > self.compression_ratio_threshold

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

    def further_gaps(self, other: Any) -> dict[str, float]:
        """Returns the differences of `no_speech` and, for equal texts, `mean_log_probability`."""
        is_same = (self.transcript, self.length) == (other.transcript, other.length)
        return {
            name: _gap(getattr(self, name), getattr(other, name))
            for name in NUMBERS
            if name == NUMBERS[0] or is_same
        }

    def score_of(self, other: Any) -> float:
        """Returns this result's own score: it has no score of another text."""
        return self.score

    def score_error(self, other: Any) -> float:
        """Returns `gap`: errors of the tokens add up, so that they are averaged."""
        return self.gap(other)

    def is_tied(self, other: Any, tolerance: float) -> bool:
        """Returns whether the two scores differ by at most twice the tolerance; see `gap`."""
        return self.gap(other) <= 2 * tolerance


def _gap(ours, theirs):
    """Returns the difference of two numbers that may be `None`: NaN if only one of them is."""
    if ours is None or theirs is None:
        return 0.0 if ours is theirs else float("nan")
    return abs(ours - theirs)


def read_transcripts(
    answers: dict[str, np.ndarray], repeated: float = REPEATED
) -> list[Transcript]:
    """Returns a `Transcript` for each row of answers.

    Args:
        answers: See `SpeechCodec.answers`, in arrays.
        repeated: The `compression_ratio_threshold` of the transcripts.
    """
    count = len(answers["transcript"])
    languages = [code.decode() for code in answers.get("language", ())] or [None] * count
    segments = read_segments(answers) or [()] * count
    terms, tokens = answers.get("terms", answers["length"]), answers.get("tokens", [()] * count)
    numbers = {name: _floats(answers.get(name), count) for name in NUMBERS}
    complete = _complete(answers)
    return [
        Transcript(
            answers["transcript"][row].decode("utf-8", "replace"),
            float(answers["score"][row]),
            int(answers["length"][row]),
            bool(answers["truncated"][row]),
            languages[row],
            segments[row],
            complete=bool(complete[row]),
            terms=float(terms[row]),
            compression_ratio_threshold=repeated,
            tokens=tuple(map(int, tokens[row])),
            **{name: values[row] for name, values in numbers.items()},
        )
        for row in range(count)
    ]


def _complete(answers):
    if COMPLETE not in answers:
        raise ValueError(
            f"the model does not say which outputs are complete (`{COMPLETE}`): it was exported by "
            "an earlier version. Export it again."
        )
    return answers[COMPLETE]


def _floats(values, count):
    return [None] * count if values is None else np.asarray(values).tolist()
