"""The files of a folder for CTranslate2 that this package reads itself: metadata and tokenizers."""

import functools
import pathlib
from typing import Any

from keras_transformer.export.ctranslate2.metadata import read_metadata
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.text.tokenizers.pair import vocabulary_files

MODEL, CONFIG = "model.bin", "config.json"
VOCABULARY = "vocabulary.json"  # only models without a source have it


def read_folder(path) -> tuple[dict[str, Any], Tokenizers]:
    """Returns the metadata and the `Tokenizers` of a folder.

    Args:
        path: Path of the folder.

    Raises:
        ValueError: If the folder was not written by `export_ctranslate2`, or is damaged; the
            message names the file.
    """
    vocabulary = vocabulary_files(lambda name: (path / name).is_file())
    for name in (MODEL, CONFIG, *vocabulary):
        if not (path / name).is_file():
            raise ValueError(
                f"{path} was not written by `keras-transformer export ctranslate2`, or is "
                f"damaged: {name} is missing."
            )
    metadata = read_metadata(path / CONFIG)
    try:
        return metadata, Tokenizers.from_files(functools.partial(_read, path))
    except ValueError as error:
        raise ValueError(f"{path}/{error}") from error


def _read(folder, name):
    """Returns the content of a file in a folder, or `None` if it does not exist."""
    path = pathlib.Path(folder, name)
    return path.read_bytes() if path.is_file() else None
