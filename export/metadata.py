"""Metadata and vocabulary of an export that is one file: names, and checks when it is read."""

import contextlib
import json
import zipfile
import zlib
from collections.abc import Callable, Generator
from typing import Any

from keras_transformer.plugins import REMEDY
from keras_transformer.tasks import TASKS
from keras_transformer.text.tokenizers import Tokenizers

METADATA = "metadata.json"
VOCABULARY = "vocabulary"  # key of the metadata, false if the model does not process text
SEARCH = "search"  # key of the metadata, of one search
STREAMING = "streaming"  # key of the metadata of a file that generates token by token
# Errors that `zipfile`, `json` and constructors raise for damaged files.
DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError),
    *(ValueError, TypeError, LookupError),
)


def parse_metadata(path, text, version) -> dict[str, Any]:
    """Returns the metadata of a file after checking them.

    Args:
        path: The file, for errors.
        text: The metadata as JSON.
        version: Version of the format that this package reads.

    Raises:
        ValueError: If they have another version, name an unknown task or are damaged.
    """
    with reading(path, METADATA):
        metadata = dict(json.loads(text))
        written = metadata["format"]
    if written != version:
        raise ValueError(
            f"{path} has format {written}; this package reads format {version}. Export it again."
        )
    if isinstance(metadata.get("task"), str) and metadata["task"] not in TASKS:
        raise ValueError(f"{path} has the task {metadata['task']!r}, which is unknown: {REMEDY}.")
    with reading(path, METADATA):
        required = (("max_length", int),) if metadata.get(VOCABULARY, True) else ()
        for name, kind in (*required, ("quantize", str), ("task", str)):
            if not isinstance(metadata[name], kind):
                raise TypeError(name)
    return metadata


def read_vocabulary(
    path, metadata: dict[str, Any], read: Callable[[str], bytes | None]
) -> Tokenizers | None:
    """Returns the `Tokenizers` of a file, `None` if the model does not process text.

    Args:
        path: The file, for errors.
        metadata: Its metadata.
        read: See `Tokenizers.from_files`.

    Raises:
        ValueError: If the vocabulary is missing or damaged.
    """
    if not metadata.get(VOCABULARY, True):
        return None
    with reading(path, "vocabulary"):
        return Tokenizers.from_files(read)


@contextlib.contextmanager
def reading(path, member) -> Generator[None]:
    """Replaces errors of damaged files by a `ValueError` that names the file and its member."""
    try:
        yield
    except DAMAGED as error:
        raise ValueError(
            f"{path} is damaged: its {member} cannot be read. Export it again."
        ) from error
