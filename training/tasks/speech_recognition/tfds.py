"""Datasets of TensorFlow Datasets with a feature of sound and one of text."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from keras_transformer.tasks.speech_recognition.audio.wav import at_rate
from keras_transformer.training.data.sources.base import SPLITS, Source
from keras_transformer.training.data.sources.tfds import find_builder, prepare
from keras_transformer.training.tasks.speech_recognition.recordings import Recordings
from keras_transformer.training.tasks.speech_recognition.speed_copies import at_speeds


class TfdsSpeech(Recordings):
    """A dataset with a feature of sound and one of text.

    Args:
        builder: A `tfds.core.DatasetBuilder` whose data are prepared.
        features: Names of the two features.
        parts: Dictionary from a split to the name of TensorFlow Datasets for it, such as
            `"train_clean100+train_clean360"`.
        rates: Samples per second of the dataset, and of the result.
    """

    def __init__(self, builder, features, parts, rates):
        self._builder, self._features, self._parts = builder, features, parts
        self._from_rate, to_rate = rates
        splits = builder.info.splits
        counts = {
            split: splits[part].num_examples if splits else None for split, part in parts.items()
        }
        name = builder.info.full_name
        identities = {split: self._state_of(part) for split, part in parts.items()}
        description = f"the TensorFlow Dataset {name}"
        super().__init__(counts, description, to_rate, self._decoded, identities, self._transcripts)

    def _state_of(self, part) -> list:
        """Returns everything that the examples of a part depend on: also its files' times."""
        info = self._builder.info
        files = [os.stat(path) for path in info.splits[part].filepaths] if info.splits else []
        states = [[state.st_size, state.st_mtime_ns] for state in files]
        own = [info.full_name, str(info.data_dir), part, list(self._features), self._from_rate]
        return [*own, states]

    def _decoded(self, split) -> Iterator[tuple[np.ndarray, str]]:
        sound, text = self._features
        examples = self._builder.as_dataset(split=self._parts[split], shuffle_files=False)
        for number, example in enumerate(tfds.as_numpy(examples), start=1):
            samples = example[sound].astype(np.float64) / 32768  # integers of 16 bits
            name = f"{self.description}, {self._parts[split]}, example {number}"
            mono = at_rate(samples[:, None], self._from_rate, self._rate, name)
            yield mono, _words(example[text])

    def _transcripts(self, split) -> Iterator[str]:
        text = self._features[1]
        examples = self._builder.as_dataset(
            split=self._parts[split],
            shuffle_files=False,
            decoders=tfds.decode.PartialDecoding({text: True}),
        )
        return (_words(example[text]) for example in tfds.as_numpy(examples))


def _words(text):
    """Returns a transcript with single spaces."""
    return " ".join(text.decode("utf-8", "replace").split())


def open_tfds_speech(settings) -> Source:
    """Opens the dataset that a `[data]` section names; downloads and prepares it if needed.

    Raises:
        ValueError: If there is no such dataset, feature or split, or it cannot be prepared. One
            line.
    """
    builder = find_builder(settings.name, settings.data_dir)
    rate = _check_features(builder, settings)
    prepare(builder, settings.name)
    parts = {
        split: getattr(settings, split) for split in SPLITS if getattr(settings, split) is not None
    }
    for split, part in parts.items():
        _check_split(builder, settings, split, part)
    rates = rate or settings.sample_rate, settings.sample_rate
    data = TfdsSpeech(builder, tuple(settings.features), parts, rates)
    return at_speeds(data, settings)


def _check_features(builder, settings) -> Any:
    """Returns the sample rate of the feature of sound, or `None` if the dataset has none."""
    known = builder.info.features
    for name, kind in zip(
        settings.features, (tfds.features.Audio, tfds.features.Text), strict=True
    ):
        if name not in known or not isinstance(known[name], kind):
            names = [key for key in known if isinstance(known[key], kind)]
            noun = kind.__name__.lower()
            raise ValueError(
                f"`features` must name a feature of audio and one of text. {settings.name} has no "
                f"feature of {noun} named {name!r}; it has {', '.join(names) or 'none'}."
            )
    sound = known[settings.features[0]]
    if sound.dtype not in (np.int16, np.int64) or len(sound.shape) != 1:
        raise ValueError(
            f"`features` must name sound of one channel in integers of 16 bits. Received: "
            f"{settings.features[0]!r} of {settings.name}, {sound.dtype} of shape {sound.shape}."
        )
    return sound.sample_rate


def _check_split(builder, settings, split, part):
    splits = builder.info.splits
    unknown = [name for name in part.split("+") if splits and name.partition("[")[0] not in splits]
    if unknown:
        raise ValueError(
            f"`data.{split}` must be splits of {settings.name}, joined by +: "
            f"{', '.join(sorted(splits))}. Received: {part!r}."
        )
