"""Recordings of any length: the windows that a model reads, and batches of similar windows."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_transformer.tasks.speech_recognition.audio import windows
from keras_transformer.tasks.speech_recognition.choices import DETECT, Choices
from keras_transformer.tasks.speech_recognition.segments import joined_segments
from keras_transformer.tasks.speech_recognition.transcript import Transcript, Window
from keras_transformer.text.languages import DETECTED

OVERLAP = 5.0  # seconds that two windows of a long recording share, at most a third of a window
# Sound in a batch, with padding. Whisper tiny.en transcribes 22 recordings in 1.6 GB with 4 of its
# windows of 30 seconds in a batch, and in 3.1 GB with 64. Larger batches are not much faster: 64
# windows took 53 seconds of processor time by 4, 45 by 16 and 55 by 64.
BATCH_SECONDS = 120.0


class LongRecordings:
    """Transcribes recordings of any length in overlapping windows.

    Args:
        speech: The `SpeechInput` of the model.
        choices: The `Choices` of the model.
        transcribe: Function from a list of windows, arrays of samples, and a dictionary of the
            numbers of their choices to a list of `Transcript`s.
    """

    def __init__(self, speech: Any, choices: Choices, transcribe: Callable[[list, dict], list]):
        self._longest, self._rate = speech.max_samples, speech.sample_rate
        self._choices, self._transcribe = choices, transcribe
        self._shortest = self._longest if speech.pad_to_max_seconds else 1  # with padding

    @property
    def window(self) -> tuple[int, int]:
        """Length and overlap of the windows of a long recording, in samples."""
        return self._longest, min(round(OVERLAP * self._rate), self._longest // 3)

    def windows(self, samples: np.ndarray) -> list[np.ndarray]:
        """Returns the windows of a recording, each of at most the length of a window."""
        return [np.asarray(window) for window in windows.split(samples, *self.window)]

    def __call__(self, recordings: list, choices: dict, batch_size: int) -> list[Transcript]:
        """Returns a `Transcript` for each recording.

        Args:
            recordings: List of arrays of samples.
            choices: Result of `Choices.rows` for the recordings, or an empty dictionary.
            batch_size: Maximum number of windows computed at a time; a batch also has at most
                `BATCH_SECONDS` of sound.
        """
        results = self._transcripts([*map(self.windows, recordings)], choices, batch_size)
        return [
            joined(of_windows, self._times(recording))
            for of_windows, recording in zip(results, recordings, strict=True)
        ]

    def _times(self, samples):
        """Returns the beginning and the end of each window in seconds, a list of pairs."""
        parts = windows.split(range(len(samples)), *self.window)
        return [(part.start / self._rate, part.stop / self._rate) for part in parts]

    def _transcripts(self, pieces, choices, batch_size):
        """Returns a list of `Transcript`s for each list of windows, given those of each recording.

        If the language of a recording is to be detected, that of the first window counts.
        """
        languages, own = choices.get("language"), self._choices
        detects = own.language == DETECTED if languages is None else DETECT in languages
        if not detects or all(len(windows_of_one) == 1 for windows_of_one in pieces):
            return self._of_windows(pieces, choices, batch_size)
        firsts = self._of_windows([each[:1] for each in pieces], choices, batch_size)
        found = own.rows(len(pieces), language=[first.language for (first,) in firsts])
        choices = {**found, **choices, "language": found["language"]}
        others = self._of_windows([each[1:] for each in pieces], choices, batch_size)
        return [first + rest for first, rest in zip(firsts, others, strict=True)]

    def _of_windows(self, pieces, choices, batch_size):
        """Returns the same as `_transcripts`; each window may have its own detected language."""
        counts = [len(windows_of_one) for windows_of_one in pieces]
        flat = [window for windows_of_one in pieces for window in windows_of_one]
        choices = {name: np.repeat(values, counts) for name, values in choices.items()}
        results = iter(self._in_batches(flat, batch_size, choices))
        return [[*itertools.islice(results, count)] for count in counts]

    def _in_batches(self, rows, batch_size, choices):
        """Returns a `Transcript` for each of a list of arrays; those of a batch are similar."""
        order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
        results = [None] * len(rows)
        limit = BATCH_SECONDS * self._rate
        while order:
            longest = max(len(rows[order[-1]]), self._shortest)
            size = min(batch_size, max(1, int(limit // longest)))
            chosen, order = order[-size:], order[:-size]
            of_rows = {name: values[chosen] for name, values in choices.items()}
            batch = self._transcribe([rows[number] for number in chosen], of_rows)
            for number, result in zip(chosen, batch, strict=True):
                results[number] = result
        return results


def joined(results: list[Transcript], times: list[tuple[float, float]]) -> Transcript:
    """Returns one `Transcript` for the windows of a recording.

    Args:
        results: The `Transcript` of each window.
        times: Beginning and end of each window, in seconds.
    """
    if len(results) == 1:
        return results[0]
    words = windows.merge([windows.words_of(result.transcript) for result in results])
    begins = [begin for begin, _ in times]
    terms = [result.terms for result in results if result.terms is not None]
    knows = all(result.no_speech is not None for result in results)
    return Transcript(
        "".join(words).strip(),
        sum(result.log_probability for result in results),
        sum(result.length for result in results),
        language=results[0].language,
        segments=joined_segments([result.segments for result in results], begins),
        complete=all(result.complete for result in results),
        terms=sum(terms) if len(terms) == len(results) else None,
        no_speech=min(result.no_speech for result in results) if knows else None,
        mean_log_probability=_mean(results) if knows else None,
        compression_ratio_threshold=results[0].compression_ratio_threshold,
        temperature=max(result.temperature for result in results),
        windows=tuple(
            Window(*pair, one.text, one.no_speech, one.mean_log_probability, one.temperature)
            for pair, one in zip(times, results, strict=True)
        ),
    )


def _mean(results):
    """Returns the mean log-probability of the tokens of all windows."""
    return float(
        np.average(
            [result.mean_log_probability for result in results],
            weights=[max(result.length, 1) for result in results],
        )
    )
