"""The pieces of a serialised SentencePiece model, and pieces that it only decodes."""

from sentencepiece import sentencepiece_model_pb2

UNUSED = sentencepiece_model_pb2.ModelProto.SentencePiece.UNUSED


def pieces_of(model):
    """Returns the pieces of a model in the order of their ids, a list of strings.

    Args:
        model: The bytes of the model.

    Raises:
        ValueError: If it is something else.
    """
    return [piece.piece for piece in _read(model).pieces]


def training_of(model):
    """Returns how a model was trained.

    Args:
        model: The bytes of the model.

    Returns:
        A tuple: its type, such as `"bpe"` or `"unigram"`; whether digits are pieces of their own;
        and the share of the characters of its texts that it covers.

    Raises:
        ValueError: If it is something else.
    """
    spec = _read(model).trainer_spec
    kind = spec.ModelType.Name(spec.model_type).lower()
    return kind, spec.split_digits, round(spec.character_coverage, 6)  # kept as a float32


def unused_pieces(model):
    """Returns the pieces of a model that it puts into no text, a dictionary to their ids.

    Args:
        model: The bytes of the model.

    Raises:
        ValueError: If it is something else.
    """
    pieces = enumerate(_read(model).pieces)
    return {piece.piece: number for number, piece in pieces if piece.type == UNUSED}


def with_unused_pieces(model, pieces):
    """Returns the bytes of a model with more pieces, which it puts into no text but can decode.

    Args:
        model: The bytes of the model.
        pieces: Strings, none of which it has.

    Raises:
        ValueError: If it is something else.
    """
    if not pieces:
        return model
    proto = _read(model)
    lowest = min(piece.score for piece in proto.pieces) - 1
    for piece in pieces:
        proto.pieces.add(piece=piece, score=lowest, type=UNUSED)
    return proto.SerializeToString()


def _read(model):
    proto = sentencepiece_model_pb2.ModelProto()
    try:
        proto.ParseFromString(model)
    except Exception as error:  # protobuf's DecodeError, wherever its version keeps it
        raise ValueError("it is no SentencePiece model") from error
    if not proto.pieces:
        raise ValueError("it is no SentencePiece model: it has no pieces")
    return proto
