"""Long recordings in windows that begin where the last complete segment has ended."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_transformer.tasks.speech_recognition.choices import DETECT
from keras_transformer.tasks.speech_recognition.fallback import Fallback
from keras_transformer.tasks.speech_recognition.segments import Segment, Word
from keras_transformer.tasks.speech_recognition.silence import compression_ratio
from keras_transformer.tasks.speech_recognition.transcript import Transcript, Window
from keras_transformer.tasks.speech_recognition.words import Spoken

WARM = 0.5  # temperature from which a text is no context of the next window


@dataclasses.dataclass(frozen=True)
class WindowOutput:
    """The output of a search for one window.

    Args:
        tokens: Token ids after the prompt, a list, with the end.
        language: Token id of the language, or `None`.
        text: The text of the tokens.
        score, terms, complete, no_speech, mean_log_probability: See `Transcript`.
        temperature: That of the attempt.
    """

    tokens: list[int]
    language: int | None
    text: str
    score: float
    terms: float
    complete: bool
    no_speech: float | None
    mean_log_probability: float | None
    temperature: float = 0.0

    @property
    def compression_ratio(self) -> float:
        """Bytes of the text over those of the compressed text."""
        return compression_ratio(self.text)


@dataclasses.dataclass(frozen=True)
class NextWindow:
    """A window to be transcribed.

    Args:
        frames: Frames `[T, F]`, at most those of a window.
        numbers: Dictionary of the numbers of its `Choices`.
        context: Token ids of the text before it, a list.
        seed: Integer for attempts at temperatures above 0.
    """

    frames: np.ndarray
    numbers: dict[str, int]
    context: list[int]
    seed: int


@dataclasses.dataclass
class _Recording:
    """A recording of which a part has been transcribed."""

    frames: np.ndarray  # [T, F]
    numbers: dict
    seed: int
    place: int = 0  # first frame of the next window
    context: list = dataclasses.field(default_factory=list)
    pieces: list = dataclasses.field(default_factory=list)  # (begin, end, tokens) of each segment
    windows: list = dataclasses.field(default_factory=list)  # (begin, end, WindowOutput, is silent)
    texts: list = dataclasses.field(default_factory=list)  # (begin, frames, tokens) of each window


class ByTimestamps:
    """Transcribes long recordings in windows that do not overlap.

    A window begins where the last segment ended whose end the model has seen: words at the edge of
    a window, which it may cut, are transcribed again. Of several recordings, a window each is
    transcribed at a time.

    Args:
        codec: The `SpeechCodec`.
        transcribe: Function from a list of `NextWindow`s and a temperature to their
            `WindowOutput`s, a list.
        fallback: The `Fallback`.
        has_context: Whether the text of the windows before is given to the model.
        words: Function from a list of `Spoken` windows to their words, or `None`.

    Reference: Radford et al. (2022), "Robust Speech Recognition via Large-Scale Weak Supervision",
        section 4.5; `generate` of Whisper in Hugging Face's Transformers.
    """

    def __init__(
        self,
        codec: Any,
        transcribe: Callable[[list[NextWindow], float], list[WindowOutput]],
        fallback: Fallback,
        has_context: bool,
        words: Callable[[list[Spoken]], list[tuple[Word, ...]]] | None = None,
    ):
        self._words = words
        self._codec, self._transcribe = codec, transcribe
        self._fallback, self._has_context = fallback, has_context
        speech = codec.speech
        self._longest, self._stride = speech.max_frames, speech.conv_stride
        self._seconds = speech.hop_length / speech.sample_rate  # of a frame

    def __call__(self, recordings: list, numbers: list[dict], size: int) -> list[Transcript]:
        """Returns a `Transcript` for each recording.

        Args:
            recordings: List of pairs of frames `[T, F]` and a seed.
            numbers: Dictionary of the numbers of the choices of each.
            size: Maximum number of windows computed at a time.
        """
        rows = [
            _Recording(frames, {**own, "timestamps": 1} if "timestamps" in own else own, seed)
            for (frames, seed), own in zip(recordings, numbers, strict=True)
        ]
        while running := [row for row in rows if row.place < len(row.frames)]:
            for first in range(0, len(running), size):
                self._advance(running[first : first + size])
        return [self._transcript(*pair) for pair in zip(rows, numbers, strict=True)]

    def _advance(self, rows):
        """Transcribes the next window of each of a few recordings."""
        jobs = [
            NextWindow(
                row.frames[row.place : row.place + self._longest],
                row.numbers,
                row.context,
                (row.seed + row.place) & 0x7FFFFFFF,
            )
            for row in rows
        ]

        def attempt(temperature, numbers):
            return self._transcribe([jobs[number] for number in numbers], temperature)

        for row, job, output in zip(rows, jobs, self._fallback(attempt, len(jobs)), strict=True):
            self._take(row, len(job.frames), output)

    def _take(self, row, count, output):
        """Adds the output for a window of `count` frames, and moves to the next one."""
        if row.numbers.get("language") == DETECT:
            row.numbers = {**row.numbers, "language": output.language}
        begin, is_silent = row.place, self._fallback.is_silent(output)
        tokens = [token for token in output.tokens if token != self._codec.tokenizer.eos_id]
        pieces, step = split(tokens, self._codec.choices.timestamp_id, count, self._stride)
        step = count if is_silent else max(step, self._stride)
        row.place += step
        row.windows.append((begin, begin + step, output, is_silent))
        if is_silent:
            return
        words = [token for *_, part in pieces for token in part]
        row.texts.append((begin, count, self._codec.words_in(words)))
        row.pieces += [(begin + start, begin + end, part) for start, end, part in pieces]
        if self._has_context:
            self._remember(row, pieces, output)

    def _remember(self, row, pieces, output):
        """Adds the tokens of segments to the context, or forgets it after a high temperature."""
        if output.temperature >= WARM:
            row.context = []
            return
        first = self._codec.choices.timestamp_id
        for _, _, part in pieces:
            ends_twice = len(part) > 2 and part[-2] >= first  # with the beginning of the next one
            row.context = row.context + (part[:-1] if ends_twice else part)

    def _transcript(self, row, numbers):
        """Returns the `Transcript` of a recording whose windows have all been transcribed."""
        codec, outputs = self._codec, [output for _, _, output, _ in row.windows]
        timed = numbers.get("timestamps", 1)
        texts = self._texts([tokens for _, _, tokens in row.pieces])
        segments = tuple(
            Segment(round(begin * self._seconds, 2), round(end * self._seconds, 2), text.strip())
            for (begin, end, _), text in zip(row.pieces, texts, strict=True)
            if begin < end or text.strip()
        )
        knows = all(output.no_speech is not None for output in outputs)
        lengths = [max(len(output.tokens), 1) for output in outputs]
        means = [output.mean_log_probability for output in outputs]
        return Transcript(
            "".join(texts).strip(),
            sum(output.score for output in outputs),
            sum(len(output.tokens) for output in outputs),
            language=self._language(row),
            segments=tuple(one for one in segments if one.text or one.start < one.end)
            if timed
            else (),
            complete=all(output.complete for output in outputs),
            words=self._words_of(row),
            terms=sum(output.terms for output in outputs),
            no_speech=min(output.no_speech for output in outputs) if knows else None,
            mean_log_probability=float(np.average(means, weights=lengths)) if knows else None,
            compression_ratio_threshold=codec.repeated,
            temperature=max(output.temperature for output in outputs),
            windows=tuple(
                Window(
                    round(begin * self._seconds, 2),
                    round(end * self._seconds, 2),
                    "" if is_silent else output.text,
                    output.no_speech,
                    output.mean_log_probability,
                    output.temperature,
                )
                for begin, end, output, is_silent in row.windows
            ),
        )

    def _words_of(self, row):
        """Returns the words of a recording with their times, if they are requested."""
        if self._words is None:
            return ()
        prompt = self._codec.choices.prompt_of(row.numbers)
        windows = [
            Spoken(
                row.frames[begin : begin + self._longest],
                count,
                prompt,
                tokens,
                begin * self._seconds,
            )
            for begin, count, tokens in row.texts
        ]
        return tuple(word for words in self._words(windows) for word in words)

    def _texts(self, rows):
        """Returns the text of each list of tokens, with the space that it begins with."""
        width = max(map(len, rows), default=0)
        tokens = np.full([len(rows), width], self._codec.tokenizer.pad_id, np.int32)
        for to, row in zip(tokens, rows, strict=True):
            to[: len(row)] = row
        texts = self._codec.tokenizer.decode(tokens).numpy() if rows else []
        return [text.decode("utf-8", "replace") for text in texts]

    def _language(self, row):
        ids = self._codec.choices.languages
        own = row.numbers.get("language")
        return next((code for code, number in ids.items() if number == own), None)


def split(tokens: list[int], first: int, count: int, stride: int) -> tuple[list, int]:
    """Returns the segments of a window, and where the next window begins.

    Two timestamps in a row are the end of a segment and the beginning of the next one. If the
    output ends after such a pair and further text, this text is left out: the window may have
    cut it. If it ends with a single timestamp, nothing is spoken after it. No time is later than
    the end of the window: Whisper may emit timestamps of the silence that pads it.

    Args:
        tokens: Token ids of the output, without prompt and end.
        first: Id of the first timestamp.
        count: Number of frames of the window.
        stride: Number of frames between two timestamps.

    Returns:
        List of `(begin, end, tokens)` with frames of the window, and the number of frames to the
        next window.
    """

    def time_of(token):
        return min((token - first) * stride, count)

    is_time = [token >= first for token in tokens]
    ends = [n for n in range(1, len(tokens)) if is_time[n - 1] and is_time[n]]
    single = is_time[-2:] == [False, True]
    if not ends:
        times = [token for token, here in zip(tokens, is_time, strict=True) if here]
        end = time_of(times[-1]) if times and times[-1] != first else count
        return [(0, end, tokens)], count
    if single:
        ends.append(len(tokens))
    pieces, begin = [], 0
    for end in ends:
        part = tokens[begin:end]
        pieces.append((time_of(part[0]), time_of(part[-1]), part))
        begin = end
    if single:
        return pieces, count
    start, end, part = pieces[-1]
    pieces[-1] = (start, end, [*part, tokens[begin]])  # whose time the next window has as well
    return pieces, end
