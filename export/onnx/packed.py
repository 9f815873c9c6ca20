"""Vocabulary and JSON metadata of an .onnx file, in the `metadata_props` of its model."""

import base64
from typing import Any

from keras_transformer.export.metadata import (
    METADATA,
    VOCABULARY,
    parse_metadata,
    read_vocabulary,
    reading,
)
from keras_transformer.files import json_text
from keras_transformer.text.tokenizers import Tokenizers

FORMAT = 1
LARGEST = 2**31 - 2**26  # bytes of weights; a protocol buffer has 2 GiB, the graph is the rest


def pack(model, tokenizers, metadata) -> None:
    """Stores the metadata and the vocabulary, or both vocabularies, in a model.

    Args:
        model: The `onnx.ModelProto`.
        tokenizers: The `Tokenizers`, or `None` if the model does not process text.
        metadata: Dictionary of values that JSON can represent.
    """
    if tokenizers is None:
        metadata = {**metadata, VOCABULARY: False}
    del model.metadata_props[:]
    model.metadata_props.add(key=METADATA, value=json_text(metadata))
    members = {} if tokenizers is None else tokenizers.files() | tokenizers.code_points()
    for name, content in members.items():
        model.metadata_props.add(key=name, value=base64.b64encode(content).decode())


def unpack(path, properties) -> tuple[dict[str, Any], Tokenizers | None]:
    """Reads what `pack` has stored.

    Args:
        path: The file, for errors.
        properties: The `metadata_props` of its model, a dictionary of strings.

    Returns:
        The metadata, a dictionary, and the `Tokenizers`, `None` if the model does not process text.

    Raises:
        ValueError: If the file was written by another program or another version, or is damaged.
    """
    if METADATA not in properties:
        raise ValueError(
            f"{path} was not written by `keras-transformer export onnx`: it contains no metadata."
        )
    metadata = parse_metadata(path, properties[METADATA], FORMAT)

    def read(name):
        if name not in properties:
            return None
        with reading(path, "vocabulary"):
            return base64.b64decode(properties[name], validate=True)

    return metadata, read_vocabulary(path, metadata, read)
