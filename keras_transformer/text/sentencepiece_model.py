"""Pieces, special ids and training options of a serialised SentencePiece model."""

import struct
import typing
from typing import Any

from keras_transformer.text.sentencepiece_package import sentencepiece, sentencepiece_model_pb2

# `Any`, because protobuf makes the classes of this module when it is imported, and SentencePiece
# adds methods to this class.
messages: typing.Any = sentencepiece_model_pb2
Processor: typing.Any = sentencepiece.SentencePieceProcessor
UNUSED = messages.ModelProto.SentencePiece.UNUSED
# A table of normalisation without a rule: the size of a double array in bytes, the array with the
# root alone, and the end of an empty string.
NO_RULES = struct.pack("<I", 1024) + bytes(1024) + b"\0"


class SpecialIds(typing.NamedTuple):
    """Size and special ids of a SentencePiece model; an id that it does not define is -1."""

    size: int
    pad_id: int
    unk_id: int
    bos_id: int
    eos_id: int

    @classmethod
    def of(cls, model) -> "SpecialIds":
        """Returns the ids of a model, given as bytes.

        Raises:
            ValueError: If the bytes are not a SentencePiece model.
        """
        processor = processor_of(model)
        ids = (getattr(processor, name)() for name in cls._fields[1:])
        return cls(processor.vocab_size(), *ids)


def with_table(model: bytes) -> bytes:
    """Returns a model that has a table of normalisation.

    SentencePiece writes a line on stderr whenever it loads a model without one. A table without a
    rule normalises in the same way.

    Args:
        model: The bytes of the model.
    """
    if messages.ModelProto.FromString(model).normalizer_spec.precompiled_charsmap:
        return model
    spec = messages.NormalizerSpec(precompiled_charsmap=NO_RULES)
    # Messages that follow each other are merged.
    return model + messages.ModelProto(normalizer_spec=spec).SerializePartialToString()


def processor_of(model, special=()) -> Processor:
    """Returns a `sentencepiece.SentencePieceProcessor` with a model.

    Args:
        model: The bytes of the model.
        special: Names of special pieces that the model must define, such as `"pad"`.

    Raises:
        ValueError: If `model` is not a SentencePiece model, or lacks a special piece.
    """
    try:
        if not model:  # SentencePiece would load nothing and raise no error
            raise RuntimeError("it is empty")
        processor = Processor(model_proto=model)
    except RuntimeError as error:
        raise ValueError(
            "`model` must be the bytes of a SentencePiece model. "
            f"Received: {len(model)} bytes, which are damaged or something else."
        ) from error
    missing = [name for name in special if getattr(processor, f"{name}_id")() < 0]
    if missing:
        raise ValueError(
            "`model` must define the special pieces pad, unk, bos and eos. Received: a "
            f"SentencePiece model of {processor.vocab_size()} pieces without "
            f"{' and '.join(missing)}."
        )
    return processor


def read_model(model) -> Any:
    """Returns the `ModelProto` of a model.

    Args:
        model: The bytes of the model.

    Raises:
        ValueError: If `model` is not a SentencePiece model.
    """
    proto = messages.ModelProto()
    try:
        proto.ParseFromString(model)
    except Exception as error:  # protobuf's DecodeError, whose module depends on the version
        raise ValueError("not a SentencePiece model") from error
    if not proto.pieces:
        raise ValueError("not a SentencePiece model: it has no pieces")
    return proto


def type_of(proto) -> str:
    """Returns the type of a `ModelProto`, such as `"bpe"` or `"unigram"`."""
    spec = proto.trainer_spec
    return spec.ModelType.Name(spec.model_type).lower()


def pieces_of(model) -> list[Any]:
    """Returns the pieces of a model in the order of their ids, strings; see `read_model`."""
    return [piece.piece for piece in read_model(model).pieces]


def with_unused_pieces(model, pieces) -> bytes:
    """Returns the bytes of a model with additional pieces, which it decodes but never encodes.

    Args:
        model: The bytes of the model.
        pieces: Strings that are not pieces of the model.

    Raises:
        ValueError: If `model` is not a SentencePiece model.
    """
    if not pieces:
        return model
    proto = read_model(model)
    lowest = min(piece.score for piece in proto.pieces) - 1
    for piece in pieces:
        proto.pieces.add(piece=piece, score=lowest, type=UNUSED)
    return proto.SerializeToString()
