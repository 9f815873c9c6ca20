"""Recordings as arrays of samples or as contents of files."""

import os

import numpy as np

from keras_transformer.files import read_bytes
from keras_transformer.tasks.speech_recognition.audio.files import read_audio
from keras_transformer.tasks.speech_recognition.audio.wav import check_range


def checked_samples(samples, name) -> np.ndarray:
    """Returns an array of samples as float32 `[N]`; integers of 16 bits become -1 to 1.

    Raises:
        TypeError: If the array has another dtype.
        ValueError: If it has several channels, or numbers that `check_range` refuses.
    """
    samples = np.asarray(samples)
    if samples.dtype == np.int16:
        samples = samples.astype(np.float32) / 32_768
    if samples.dtype.kind != "f":
        raise TypeError(
            f"{name}: samples must be floating, from -1 to 1, or int16. Received: {samples.dtype}."
        )
    if samples.ndim != 1:
        raise ValueError(
            f"{name}: samples must have one channel, [N]. Received: shape {samples.shape}."
        )
    check_range(samples, name)
    return samples.astype(np.float32, copy=False)


def samples_of(recording, sample_rate, name) -> np.ndarray:
    """Returns the samples of a recording of any length, float32 `[N]`.

    Args:
        recording: A path, the bytes of a file, or an array of samples at the rate.
        sample_rate: Samples per second of the result.
        name: Name of the recording in errors, if it is not a path.

    Raises:
        TypeError: If an array has another dtype.
        ValueError: If the recording cannot be read; the error is one line.
    """
    if isinstance(recording, (str, os.PathLike)):
        return read_audio(recording, sample_rate)
    if isinstance(recording, bytes):
        return read_audio(recording, sample_rate, name)
    return checked_samples(recording, name)


def content_of(example: str | os.PathLike | bytes) -> bytes:
    """Returns the bytes of a file, given these or its path.

    Raises:
        TypeError: If `example` is neither.
    """
    if isinstance(example, bytes):
        return example
    if isinstance(example, (str, os.PathLike)):
        return read_bytes(example)
    raise TypeError(
        f"`recordings` must be paths or the bytes of WAV files. Received: {type(example).__name__}."
    )
