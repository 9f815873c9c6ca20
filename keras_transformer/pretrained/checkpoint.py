"""A checkpoint of another project: its model, its tokenizers, and what is known of it."""

import pathlib
import typing
import warnings

from keras_transformer.checkpoint_hints import hint
from keras_transformer.pretrained.folder import CheckpointFolder


class Checkpoint(typing.NamedTuple):
    """A checkpoint as objects of this package.

    Attributes:
        model: A `Transformer`.
        tokenizers: Its `Tokenizers`.
        origin: Dictionary of what is known of it: `format`, `name`, `license`.
        search: How it wants to be searched, a `Greedy` or a `Beam`.
        notes: List of strings: what of its settings is not carried over.
    """

    model: typing.Any
    tokenizers: typing.Any
    origin: dict
    search: typing.Any
    notes: list


def read_checkpoint(path):
    """Returns the `Checkpoint` at a path.

    Args:
        path: A folder with a Marian model in Hugging Face's format, such as one of OPUS-MT; or a
            `.npz` or `.bin` file of Marian itself, with its vocabularies beside it: see
            `vocabularies_beside`.

    Raises:
        ValueError: If it is something else, damaged, or cannot be expressed.
        OSError: If it cannot be read.
    """
    from keras_transformer.pretrained.marian.convert import read_marian
    from keras_transformer.pretrained.marian.files import READERS, vocabularies_beside
    from keras_transformer.pretrained.opus_mt.checkpoint import read_opus_mt

    path = pathlib.Path(path)
    if path.suffix in READERS and path.is_file():
        return read_marian(path, vocabularies_beside(path))
    if CheckpointFolder(path).file("config.json") is None:
        raise ValueError(
            f"{path} must be a folder with a config.json, a Marian model in Hugging Face's format, "
            f"or a file of Marian, {' or '.join(READERS)}.{hint(path, conversion=False)}"
        )
    return read_opus_mt(path)


def open_checkpoint(path):
    """Returns what `read_checkpoint` does, with a warning for each of its notes."""
    checkpoint = read_checkpoint(path)
    for note in checkpoint.notes:
        warnings.warn(f"{note}.", stacklevel=3)
    return checkpoint
