"""Generated pairs of texts as a TensorFlow Dataset: split, built once, and kept."""

import contextlib
import io
import logging
import os

import tensorflow_datasets as tfds

from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.data.sources.tfds import TfdsData

_HELD_OUT = 2000  # examples for validation, and as many for the test


def held_out(examples, seed):
    """Splits examples at random.

    Args:
        examples: A list.
        seed: Decides which are held out.

    Returns:
        Dictionary of the lists `train`, `validation` and `test`. The latter two have 2,000 examples
        each, or a tenth of all where that is less.
    """
    count = min(_HELD_OUT, len(examples) // 10)
    # From everywhere: kinds of which there are few become rarer from beginning to end.
    chosen = Dice(seed).some(range(len(examples)), 2 * count)
    validation, test = set(chosen[:count]), set(chosen[count:])
    splits = {"train": [], "validation": [], "test": []}
    for index, example in enumerate(examples):
        name = "validation" if index in validation else "test" if index in test else "train"
        splits[name].append(example)
    return splits


def open_generated(make_builder, features, settings):
    """Builds a generated dataset, unless it has been built before.

    It is kept, like any TensorFlow Dataset, in the folder `data_dir` of the settings, otherwise in
    `TFDS_DATA_DIR`, otherwise in `~/tensorflow_datasets`.

    Args:
        make_builder: Function of `data_dir` to the `tfds.core.DatasetBuilder`.
        features: Its two features, source and target.
        settings: The `[data]` section.

    Returns:
        A `TfdsData`.

    Raises:
        ValueError: If what it is built of is wrong, or the folder cannot be written.
    """
    data_dir = getattr(settings, "data_dir", None)
    data_dir = None if data_dir is None else os.fspath(data_dir)
    builder = _quietly(make_builder, data_dir)
    if not builder.data_path.exists():
        _build(builder)
        builder = _quietly(make_builder, data_dir)  # as it is on the disk
    return TfdsData(builder, *features)


def _quietly(make_builder, data_dir):
    log = logging.getLogger("absl")
    level = log.level
    log.setLevel(logging.ERROR)  # TFDS warns of every configuration that is made on demand
    try:
        return make_builder(data_dir=data_dir)
    finally:
        log.setLevel(level)


def _build(builder):
    """TFDS writes beside the folder and renames: it is whole or not there, whoever else builds."""
    silence = io.StringIO()  # TFDS announces a download and shows bars, for a few seconds' work
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
