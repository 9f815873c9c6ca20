"""The ways to read a recording that is longer than a model's limit."""

import dataclasses
import functools
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.options import WINDOWS
from keras_transformer.tasks.speech_recognition.attempts import outputs_of_jobs
from keras_transformer.tasks.speech_recognition.by_timestamps import ByTimestamps
from keras_transformer.tasks.speech_recognition.fallback import seed_of
from keras_transformer.tasks.speech_recognition.features import (
    frames_of,
    frames_of_recording,
)
from keras_transformer.tasks.speech_recognition.long_recordings import BATCH_SECONDS
from keras_transformer.tasks.speech_recognition.words import Spoken, of_windows

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


def transcripts(
    recognizer: Any, overlapping: Any, recordings: list, choices: dict, batch_size: int
) -> list:
    """Returns a `Transcript` for each recording.

    Args:
        recognizer: A `SpeechRecognizer`.
        overlapping: Its `LongRecordings`, which also transcribes recordings of one window.
        recordings, choices, batch_size: See `LongRecordings`.
    """
    results = _transcripts(recognizer, overlapping, recordings, choices, batch_size)
    if recognizer.words:
        short = [  # an invented text, which counts as silence, has no words
            number
            for number, result in enumerate(results)
            if result.transcript and not result.windows
        ]
        windows = [
            _spoken(recognizer.codec, recordings[number], results[number].tokens)
            for number in short
        ]
        for number, words in zip(short, of_windows(recognizer, windows), strict=True):
            results[number] = dataclasses.replace(results[number], words=words)
    return results


def _spoken(codec, samples, tokens):
    """Returns the `Spoken` text of a recording of one window; `tokens` are the whole output."""
    samples = samples[: codec.longest]
    frames = frames_of(codec.speech, tf.constant(samples[None]), [len(samples)])[0].numpy()
    count, begin = len(samples) // codec.speech.hop_length, len(codec.choices.prompt)
    return Spoken(frames, count, [*tokens[:begin]], codec.words_in(tokens[begin:]), 0.0)


def _transcripts(recognizer, overlapping, recordings, choices, batch_size):
    codec = recognizer.codec
    is_long = np.array([len(samples) > codec.longest for samples in recordings], bool)
    if recognizer.windows == OVERLAP or not is_long.any():
        return overlapping(recordings, choices, batch_size)
    shorter, longer = np.flatnonzero(~is_long), np.flatnonzero(is_long)
    results = dict.fromkeys(range(len(recordings)))
    own = {name: values[shorter] for name, values in choices.items()}
    some = overlapping([recordings[number] for number in shorter], own, batch_size)
    results |= dict(zip(shorter.tolist(), some, strict=True))
    rows = choices or codec.choices.rows(len(recordings))
    numbers = [{name: int(rows[name][one]) for name in codec.choices.names} for one in longer]
    longer_ones = [recordings[number] for number in longer]
    sounds = [(frames_of_recording(codec.speech, one), seed_of(one)) for one in longer_ones]
    by_timestamps = ByTimestamps(
        codec,
        lambda jobs, temperature: outputs_of_jobs(recognizer, jobs, temperature),
        recognizer.fallback,
        recognizer.windows == CONTEXT,
        functools.partial(of_windows, recognizer) if recognizer.words else None,
    )
    size = min(batch_size, max(1, int(BATCH_SECONDS // codec.speech.max_seconds)))
    some = by_timestamps(sounds, numbers, size)
    results |= dict(zip(longer.tolist(), some, strict=True))
    return [*results.values()]
