"""The ways to read a recording that is longer than a model's limit."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.options import WINDOWS
from keras_transformer.tasks.speech_recognition.attempts import WindowSearch
from keras_transformer.tasks.speech_recognition.by_timestamps import ByTimestamps
from keras_transformer.tasks.speech_recognition.fallback import Fallback, seed_of
from keras_transformer.tasks.speech_recognition.features import (
    frames_of,
    frames_of_recording,
)
from keras_transformer.tasks.speech_recognition.long_recordings import (
    BATCH_SECONDS,
    LongRecordings,
)
from keras_transformer.tasks.speech_recognition.segments import Word
from keras_transformer.tasks.speech_recognition.transcript import Transcript
from keras_transformer.tasks.speech_recognition.words import Spoken

OVERLAP, TIMESTAMPS, CONTEXT = WINDOWS


def has_timestamps(config: Any) -> bool:
    """Returns whether windows can follow the timestamps of a model.

    Args:
        config: The `SpeechTransformerConfig`. Its recordings must be padded to the maximum length,
            as Whisper's.
    """
    return config.head.rules.timestamp_id is not None and config.input.pad_to_max_seconds


def checked(windows: str | None, config: Any) -> str:
    """Returns a name of `WINDOWS`; `None` is the best one that a model has.

    Raises:
        ValueError: If the name is unknown, or the model lacks what it needs.
    """
    if windows is None:
        return TIMESTAMPS if has_timestamps(config) else OVERLAP
    if windows not in WINDOWS:
        known = ", ".join(map(repr, WINDOWS))
        raise ValueError(f"`windows` must be one of {known}. Received: windows={windows!r}.")
    if windows != OVERLAP and not has_timestamps(config):
        raise ValueError(
            f"`windows` must be {OVERLAP!r} for a model without timestamps. "
            f"Received: windows={windows!r}."
        )
    if windows == CONTEXT and config.head.rules.previous_id is None:
        raise ValueError(
            f"`windows` must not be {CONTEXT!r} for a model without `previous_id`, which Whisper "
            f"has if its checkpoint is converted again. Received: windows={windows!r}."
        )
    return windows


def has_words(config: Any) -> bool:
    """Returns whether the words of a model have times; see `has_timestamps`."""
    return bool(config.head.rules.alignment_heads) and has_timestamps(config)


def checked_words(words: bool, windows: str, config: Any) -> bool:
    """Returns `words`.

    Raises:
        ValueError: If words are requested, and the model or the windows do not have their times.
    """
    if words and not has_words(config):
        raise ValueError(
            "`words` must be False for a model without `alignment_heads`, which Whisper has if its "
            "checkpoint is converted again. Received: words=True."
        )
    if words and windows == OVERLAP:
        raise ValueError(
            f"`words` have no times in windows that overlap. Received: words=True, "
            f"windows={windows!r}."
        )
    return words


@dataclasses.dataclass(frozen=True)
class LongForm:
    """The plan by which recordings of any length are read, by a run or an export.

    Args:
        codec: The `SpeechCodec`.
        windows: One of `WINDOWS`.
        overlapping: The `LongRecordings`, which also transcribe recordings of one window.
        search: The `WindowSearch`; `None` if windows overlap.
        fallback: The `Fallback`.
        words: Function from a list of `Spoken` windows to their words. `None`: there are none.
    """

    codec: Any
    windows: str
    overlapping: LongRecordings
    search: WindowSearch | None
    fallback: Fallback
    words: Callable[[list[Spoken]], list[tuple[Word, ...]]] | None = None

    def __call__(self, recordings: list, choices: dict, batch_size: int) -> list[Transcript]:
        """Returns a `Transcript` for each recording.

        Args:
            recordings, choices, batch_size: See `LongRecordings`.
        """
        results = self._transcripts(recordings, choices, batch_size)
        if self.words is not None:
            short = [  # an invented text, which counts as silence, has no words
                number
                for number, result in enumerate(results)
                if result.transcript and not result.windows
            ]
            windows = [
                _spoken(self.codec, recordings[number], results[number].tokens) for number in short
            ]
            for number, words in zip(short, self.words(windows), strict=True):
                results[number] = dataclasses.replace(results[number], words=words)
        return results

    def _transcripts(self, recordings, choices, batch_size):
        is_long = np.array([len(samples) > self.codec.longest for samples in recordings], bool)
        if self.search is None or self.windows == OVERLAP or not is_long.any():
            return self.overlapping(recordings, choices, batch_size)
        shorter, longer = np.flatnonzero(~is_long), np.flatnonzero(is_long)
        results: dict[int, Any] = dict.fromkeys(range(len(recordings)))
        own = {name: values[shorter] for name, values in choices.items()}
        some = self.overlapping([recordings[number] for number in shorter], own, batch_size)
        results |= dict(zip(shorter.tolist(), some, strict=True))
        rows = choices or self.codec.choices.rows(len(recordings))
        some = self._by_timestamps(
            [recordings[number] for number in longer],
            [{name: int(rows[name][one]) for name in self.codec.choices.names} for one in longer],
            batch_size,
        )
        results |= dict(zip(longer.tolist(), some, strict=True))
        return [*results.values()]

    def _by_timestamps(self, recordings, numbers, batch_size):
        """Returns the `Transcript`s of recordings that are longer than a window."""
        codec, speech = self.codec, self.codec.speech
        sounds = [(frames_of_recording(speech, one), seed_of(one)) for one in recordings]
        has_context = self.windows == CONTEXT
        read = ByTimestamps(codec, self.search, self.fallback, has_context, self.words)
        most = max(1, int(BATCH_SECONDS // speech.max_seconds))
        return read(sounds, numbers, min(batch_size, most))


def _spoken(codec, samples, tokens):
    """Returns the `Spoken` text of a recording of one window; `tokens` are the whole output."""
    samples = samples[: codec.longest]
    frames = frames_of(codec.speech, tf.constant(samples[None]), [len(samples)])[0].numpy()
    count, begin = len(samples) // codec.speech.hop_length, len(codec.choices.prompt)
    return Spoken(frames, count, [*tokens[:begin]], codec.words_in(tokens[begin:]), 0.0)
