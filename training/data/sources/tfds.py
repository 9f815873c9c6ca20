"""Datasets of TensorFlow Datasets whose examples are pairs of texts."""

import difflib
import os
from typing import Any

import tensorflow as tf
import tensorflow_datasets as tfds

from keras_transformer.training.data.sources.base import SPLITS, Source


class TfdsData(Source):
    """A dataset with two features of text, such as texts in two languages.

    Args:
        builder: A `tfds.core.DatasetBuilder` whose data are prepared.
        source, target: Names of the two features.

    Raises:
        ValueError: If the dataset has no training or validation split.
    """

    def __init__(self, builder, source, target):
        self.description = f"the TensorFlow Dataset {builder.info.full_name}"
        self._builder = builder
        self._features = source, target
        # A dataset that is mocked in a test does not know its splits.
        known = builder.info.splits or dict.fromkeys(SPLITS)
        self.splits = tuple(split for split in SPLITS if split in known)
        if self.splits[:2] != SPLITS[:2]:
            raise ValueError(
                "`name` must be a dataset with the splits train and validation. Received: "
                f"name={_name(builder)!r}, which has {', '.join(sorted(known))}."
            )

    def rows(self, split) -> tf.data.Dataset:
        self.check_split(split)
        source, target = self._features
        info = self._builder.info
        if not info.splits or info.file_format != tfds.core.FileFormat.TFRECORD:
            examples = self._builder.as_dataset(split=split, shuffle_files=False)
            return examples.map(lambda example: (example[source], example[target]))
        # Does the same as `as_dataset`, but parses 1,024 examples at a time: 126,000 pairs take 0.4
        # instead of 6 seconds of a core.
        text = {name: tf.io.FixedLenFeature([], tf.string) for name in (source, target)}
        files = [os.fspath(path) for path in info.splits[split].filepaths]
        records = tf.data.TFRecordDataset(files, buffer_size=2**20).batch(1024)
        examples = records.map(lambda batch: tf.io.parse_example(batch, text))
        return examples.map(lambda batch: (batch[source], batch[target])).unbatch()

    def identity(self, split) -> Any:
        """Returns sizes and times of the dataset's files; a checksum if it has no files."""
        self.check_split(split)
        info = self._builder.info
        if not info.splits:
            return super().identity(split)
        files = [os.stat(path) for path in info.splits[split].filepaths]
        states = [[state.st_size, state.st_mtime_ns] for state in files]
        return [info.full_name, str(info.data_dir), split, list(self._features), states]

    def count(self, split) -> int | None:
        self.check_split(split)
        splits = self._builder.info.splits
        return splits[split].num_examples if splits else None


def open_tfds(settings) -> TfdsData:
    """Opens the dataset that a `[data]` section names; downloads and prepares it if needed."""
    builder = find_builder(settings.name, settings.data_dir)
    features = getattr(settings, "features", None)
    if features is None:
        features = settings.source_language, settings.target_language
        _check_languages(builder, *features)  # before the download
    else:
        _check_texts(builder, features)
    prepare(builder, settings.name)
    return TfdsData(builder, *features)


def prepare(builder, name) -> None:
    """Downloads and prepares a dataset if needed.

    Args:
        builder: A `tfds.core.DatasetBuilder`.
        name: The name of the dataset in the settings, for errors.

    Raises:
        ValueError: If it cannot be prepared. One line.
    """
    try:
        builder.download_and_prepare()
    except Exception as error:  # a dataset's script, a server or a disk may raise any exception
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"`name` must be a dataset that TensorFlow Datasets can prepare here. Received: "
            f"name={name!r}, and in {builder.data_dir}: {type(error).__name__}: {reason}"
        ) from error


def find_builder(name, data_dir) -> Any:
    """Returns the `tfds.core.DatasetBuilder` of a dataset.

    Args:
        name: Name of the dataset, with its configuration where it has several.
        data_dir: Folder of the data. `None`: the folder of TensorFlow Datasets.

    Raises:
        ValueError: If there is no such dataset. One line with similar names.
    """
    try:
        return tfds.builder(name, data_dir=None if data_dir is None else os.fspath(data_dir))
    except Exception as error:  # TFDS raises ValueError, AssertionError and others
        dataset, _, config = name.partition("/")
        known = tfds.list_builders(with_community_datasets=False)
        kind, choices = "datasets", known
        if dataset in known:
            kind = f"configurations of {dataset}"
            choices = list(tfds.builder_cls(dataset).builder_configs)
        close = difflib.get_close_matches(config if dataset in known else dataset, choices, n=5)
        raise ValueError(
            "`name` must be a dataset of TensorFlow Datasets, with its configuration where it has "
            f"several, such as wmt14_translate/de-en. Received: name={name!r}. "
            f"{'Similar' if close else 'Some'} {kind}: {', '.join(close or sorted(choices)[:8])}."
        ) from error


def _check_languages(builder, source_language, target_language):
    features = builder.info.features
    if not isinstance(features, tfds.features.Translation):
        raise ValueError(
            "`name` must be a translation dataset, which has a feature for each language, or "
            "`features` must name two features of text. Received: "
            f"name={_name(builder)!r}, whose features are {', '.join(features)}."
        )
    languages = features.languages
    for argument, language in (
        ("source_language", source_language),
        ("target_language", target_language),
    ):
        if language not in languages:
            raise ValueError(
                f"`{argument}` must be one of {', '.join(sorted(languages))}, the languages of "
                f"{_name(builder)}. Received: {argument}={language!r}."
            )
    if source_language == target_language:
        raise ValueError(
            "`source_language` and `target_language` must differ. "
            f"Received: {source_language!r} for both."
        )


def _check_texts(builder, features):
    known = builder.info.features
    texts = [name for name in known if isinstance(known[name], tfds.features.Text)]
    for name in features:
        if name not in texts:
            names = f"which has {', '.join(texts)}" if texts else "which has none"
            raise ValueError(
                f"`features` must be features of text in {_name(builder)}, {names}. "
                f"Received: {name!r}."
            )


def _name(builder):
    config = builder.builder_config
    return f"{builder.name}/{config.name}" if config else builder.name
