"""Generated pairs of texts as a TensorFlow Dataset, which is built once and stored."""

import contextlib
import io
import logging
import os

import tensorflow_datasets as tfds

from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.data.sources.tfds import TfdsData

_HELD_OUT = 2000  # examples in validation and in test each


def held_out(examples, seed) -> dict[str, list]:
    """Splits examples at random.

    Args:
        examples: List of examples.
        seed: Random seed of the splits.

    Returns:
        Dictionary of the lists `train`, `validation` and `test`. The latter two have 2,000 examples
        each, or a tenth of all examples if that is less.
    """
    count = min(_HELD_OUT, len(examples) // 10)
    # Drawn from the whole list: kinds with few different examples become rarer towards its end.
    chosen = Dice(seed).some(range(len(examples)), 2 * count)
    validation, test = set(chosen[:count]), set(chosen[count:])
    splits = {"train": [], "validation": [], "test": []}
    for index, example in enumerate(examples):
        name = "validation" if index in validation else "test" if index in test else "train"
        splits[name].append(example)
    return splits


def open_generated(make_builder, features, settings) -> TfdsData:
    """Builds a generated dataset, unless it has been built before.

    Like any TensorFlow Dataset it is stored in the folder `data_dir` of the settings, otherwise in
    `TFDS_DATA_DIR`, otherwise in `~/tensorflow_datasets`.

    Args:
        make_builder: Function from `data_dir` to the `tfds.core.DatasetBuilder`.
        features: Names of the two features of the dataset, source and target.
        settings: The `[data]` section.

    Returns:
        A `TfdsData`.

    Raises:
        ValueError: If the settings of the dataset are wrong, or the folder cannot be written.
    """
    data_dir = getattr(settings, "data_dir", None)
    data_dir = None if data_dir is None else os.fspath(data_dir)
    builder = _quietly(make_builder, data_dir)
    if not builder.data_path.exists():
        _build(builder)
        builder = _quietly(make_builder, data_dir)  # reads the dataset on the disk
    return TfdsData(builder, *features)


def _quietly(make_builder, data_dir):
    log = logging.getLogger("absl")
    level = log.level
    log.setLevel(logging.ERROR)  # TFDS warns about every configuration that is made on demand
    try:
        return make_builder(data_dir=data_dir)
    finally:
        log.setLevel(level)


def _build(builder):
    """Builds a dataset, completely or not at all: TFDS renames its folder when it is complete."""
    silence = io.StringIO()  # TFDS reports a download and shows bars for a few seconds of work
    try:
        with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
            builder.download_and_prepare(
                download_config=tfds.download.DownloadConfig(try_download_gcs=False)
            )
    except OSError as error:
        if builder.data_path.exists():
            return  # another process was faster
        raise ValueError(
            "`data_dir` must be a folder that can be written. Received: "
            f"{builder.data_path.parent}: {error.strerror or error}."
        ) from error
