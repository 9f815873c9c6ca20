"""SentencePiece models with fewer pieces, which segment given texts as before.

A Unigram model takes the best of all segmentations, so it suffices to keep the pieces of the best
one. A BPE model merges pieces step by step, so it also needs the pieces in between. In both, a
character remains a piece of its own, so that no other text gets unknown pieces.
"""

import re

from keras_transformer.text.sentencepiece_model import messages

PLACEHOLDER = re.compile(r"<unused \d+>")  # names an id that no token of a checkpoint has
KINDS = messages.ModelProto.SentencePiece
OF_TEXTS = (KINDS.NORMAL, KINDS.UNUSED)  # other pieces are special


def needed_pieces(model, used) -> set[int]:
    """Returns the ids of the pieces that a smaller model needs.

    Args:
        model: The bytes of the model.
        used: SentencePiece's ids of the pieces of the texts.
    """
    proto = messages.ModelProto.FromString(model)
    pieces = [(piece.piece, piece.score, piece.type) for piece in proto.pieces]
    needed = {*used}
    scores = {n: score for n, (_, score, kind) in enumerate(pieces) if kind == KINDS.NORMAL}
    if proto.trainer_spec.model_type == messages.TrainerSpec.BPE:
        needed |= _steps(pieces, used)
    elif scores:  # scores of unknown pieces and of user-defined symbols depend on both ends
        needed |= {choose(scores, key=scores.__getitem__) for choose in (min, max)}
    return needed | {
        number
        for number, (text, _, kind) in enumerate(pieces)
        if (len(text) == 1 or kind not in OF_TEXTS) and not PLACEHOLDER.fullmatch(text)
    }


def _steps(pieces, used):
    """Returns the ids of all pieces that BPE's merges make before they reach given pieces."""
    texts = {text: number for number, (text, _, kind) in enumerate(pieces) if kind in OF_TEXTS}
    steps = set()
    for symbols in ([*pieces[number][0]] for number in used if pieces[number][2] in OF_TEXTS):
        while True:
            merged = [
                texts.get(one + other) for one, other in zip(symbols, symbols[1:], strict=False)
            ]
            places = [place for place, number in enumerate(merged) if number is not None]
            if not places:
                break
            place = max(places, key=lambda place: pieces[merged[place]][1])  # the first of equals
            steps.add(merged[place])
            symbols[place : place + 2] = [pieces[merged[place]][0]]
    return steps


def smaller_model(model, kept) -> bytes:
    """Returns the bytes of a model that keeps only some of its pieces.

    Args:
        model: The bytes of the model.
        kept: SentencePiece's ids of the pieces to keep, in ascending order.
    """
    proto = messages.ModelProto.FromString(model)
    pieces = [proto.pieces[number] for number in kept]
    spec, numbers = proto.trainer_spec, {number: new for new, number in enumerate(kept)}
    spec.vocab_size = len(pieces)
    for name in ("unk_id", "bos_id", "eos_id", "pad_id"):
        setattr(spec, name, numbers.get(getattr(spec, name), -1))
    # Loading a model segments these samples, which may need the other pieces.
    proto.ClearField("self_test_data")
    proto.ClearField("pieces")
    proto.pieces.extend(pieces)
    return proto.SerializeToString()
