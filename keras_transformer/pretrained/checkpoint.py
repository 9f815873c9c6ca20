"""A checkpoint of another project: its model, its tokenizers, and what is known of it."""

import typing

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
        path: A folder with a Marian model in Hugging Face's format, such as one of OPUS-MT.

    Raises:
        ValueError: If it is something else, damaged, or cannot be expressed.
        OSError: If it cannot be read.
    """
    from keras_transformer.pretrained.opus_mt.checkpoint import read_opus_mt

    if CheckpointFolder(path).file("config.json") is None:
        raise ValueError(
            f"{path} must be a folder with a config.json, a Marian model in Hugging Face's format."
        )
    return read_opus_mt(path)
