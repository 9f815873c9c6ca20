"""Recordings at several speeds."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.speech_recognition.audio.resampling import change_speed
from keras_transformer.training.data.sources.base import Copies, Source
from keras_transformer.training.tasks.speech_recognition.recordings import raggedly


class SpeedCopies(Copies):
    """A source of recordings whose training split has a copy of each at every one of some speeds.

    First come all recordings at the first speed, then all at the second one. A copy is played
    faster or slower, which also changes its pitch.

    Args:
        data: The `Source` of recordings.
        speeds: Speeds, such as 0.9, 1.0 and 1.1.

    Reference: Ko et al. (2015), Audio Augmentation for Speech Recognition.
    """

    def __init__(self, data: Source, speeds: Sequence[float]):
        super().__init__(data, len(speeds))
        self._speeds = tuple(speeds)

    def rows(self, split) -> tf.data.Dataset:
        rows = self._data.rows(split)
        if split != "train":
            return rows
        copies = (_at_speed(rows, speed) for speed in self._speeds)
        return functools.reduce(tf.data.Dataset.concatenate, copies)

    def text_rows(self, split) -> tf.data.Dataset:  # noqa: D102
        return self._data.text_rows(split)

    def identity(self, split) -> Any:
        """Returns the identity of the recordings; for the training split, with the speeds."""
        identity = self._data.identity(split)
        return {"speeds": self._speeds, "of": identity} if split == "train" else identity


def _at_speed(rows, speed):
    """Returns a dataset of recordings at another speed."""
    if speed == 1:
        return rows

    def change(samples, text):
        changed = tf.numpy_function(
            lambda values: change_speed(values, speed).astype(np.float32), [samples], tf.float32
        )
        return tf.ensure_shape(changed, [None]), text

    return raggedly(rows.map(change, num_parallel_calls=tf.data.AUTOTUNE))


def at_speeds(data: Source, settings: Any) -> Source:
    """Returns the recordings at the `speeds` of a `[data]` section, or unchanged without any."""
    speeds = getattr(settings, "speeds", [1.0])
    return data if speeds == [1.0] else SpeedCopies(data, speeds)
