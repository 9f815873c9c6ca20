"""Bytes as printable characters, and byte-pair merges as a SentencePiece model.

SentencePiece merges two neighbours if their text is a piece; Hugging Face's tokenizers merge them
if they are a pair in the list of merges. Both compute the same if SentencePiece makes pieces only
from pairs in the list, and if the order of several pairs of one piece has no effect:
`check_merges`.
"""

import collections
import itertools
import math

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor
from keras_transformer.text.sentencepiece_model import NO_RULES, messages

PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))


def characters() -> str:
    """Returns the character that stands for each byte, a string of 256 of them.

    A byte that is a printable character of Latin-1 stands for itself, and the others are those from
    U+0100 on, as in GPT-2.
    """
    others = (byte for byte in range(256) if byte not in PRINTABLE)
    moved = {byte: chr(0x100 + number) for number, byte in enumerate(others)}
    return "".join(moved.get(byte, chr(byte)) for byte in range(256))


CHARACTERS = characters()
NO_UTF_8 = (0xC0, 0xC1, *range(0xF5, 0x100))  # bytes that never occur in UTF-8
NEVER = math.inf  # rank of a text that is no piece
BYTES = {character: byte for byte, character in enumerate(CHARACTERS)}


def text_of(piece) -> bytes:
    """Returns the bytes that a piece stands for: one per character if all are in `BYTES`.

    Any other piece, such as a special token, is encoded as UTF-8.
    """
    if all(character in BYTES for character in piece):
        return bytes(BYTES[character] for character in piece)
    return piece.encode()


def utf8_bytes(points) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the UTF-8 bytes of code points, in the graph.

    Args:
        points: Code points `[N]`, int32.

    Returns:
        The bytes, int32 `[M]`; for each byte the index of its code point, `[M]`; and for each code
        point its number of bytes, `[N]`.
    """
    counts = tf.ones_like(points)
    for first in (0x80, 0x800, 0x10000):
        counts += tf.cast(points >= first, tf.int32)
    of_point = tf.repeat(tf.range(tf.size(points)), counts)
    begins = tf.cumsum(counts, exclusive=True)
    number = tf.range(tf.size(of_point)) - tf.gather(begins, of_point)  # in the code point
    count = tf.gather(counts, of_point)
    bits = tf.bitwise.right_shift(tf.gather(points, of_point), 6 * (count - 1 - number))
    lead = tf.bitwise.bitwise_or(bits, tf.gather(tf.constant([0, 0, 0xC0, 0xE0, 0xF0]), count))
    following = 0x80 + tf.bitwise.bitwise_and(bits, 0x3F)
    return tf.where(tf.equal(number, 0), lead, following), of_point, counts


def merge_ranks(pieces, merges, symbols=None) -> dict[str, int]:
    """Returns the place in the list of merges of each piece that a merge makes, a dictionary.

    It is the place of the first pair, if several make a piece.

    Args:
        pieces: The tokens, strings.
        merges: Pairs of them. Pairs that make the same piece follow one another.
        symbols: The characters that words consist of before the first merge. A pair with another
            character is never merged, and its piece is left out. `None`: any characters.

    Raises:
        ValueError: If a merge does not fit the pieces.
    """
    known = {*pieces}
    ranks, last, seen = {}, None, set()
    for number, pair in enumerate(merges):
        if len(pair) != 2 or not {*pair, "".join(pair)} <= known:
            raise ValueError(
                f"`merges` must be pairs of pieces that together form a piece. Received: {pair!r}."
            )
        piece = "".join(pair)
        if ranks.setdefault(piece, number) != number and (piece != last or tuple(pair) in seen):
            raise ValueError(
                "`merges` must make each piece once, or by different pairs that follow one "
                f"another. Received again: {piece!r}."
            )
        seen = {*seen, tuple(pair)} if piece == last else {tuple(pair)}
        last = piece
    if symbols is None:
        return ranks
    symbols = {*symbols}
    return {piece: rank for piece, rank in ranks.items() if {*piece} <= symbols}


def check_merges(merges, ranks) -> list[str]:
    """Refuses merges that SentencePiece would not follow.

    Each piece is made from its characters, as SentencePiece makes it, and each step must be a pair
    of the list. The same then holds for every text. If a text had another pair, the first such pair
    would also occur when its piece is encoded alone: no step before it crossed the ends of that
    piece.

    If two pairs of the same piece overlap, as in `ab a ba`, SentencePiece merges the left one, and
    Hugging Face's tokenizers the one that comes first in the list. These must be the same.

    Args:
        merges: Pairs of pieces. Those whose piece has no rank are never merged.
        ranks: What `merge_ranks` returned.

    Returns:
        The pieces that are not made of their own characters: other merges come first.

    Raises:
        ValueError: With the first piece that would be made of another pair.
    """
    pairs, never_made = collections.defaultdict(list), []
    for pair in merges:
        if "".join(pair) in ranks:
            pairs["".join(pair)].append(tuple(pair))
    for piece in pairs:
        symbols, steps = merged(piece, ranks)
        if len(symbols) > 1:
            never_made.append(piece)
        for pair in steps:
            own = pairs["".join(pair)]
            if pair not in own:
                raise ValueError(
                    f"`merges` must make the piece {''.join(pair)!r} of the pair by which it is "
                    f"reached. Received: {own[0]}, and it is reached by {pair}."
                )
    for piece, own in pairs.items():
        for number, (first, second) in enumerate(own):
            for begin, end in own[:number]:
                symbols = [first, second, end]
                if second == begin and merged("".join(symbols), ranks, piece)[0] == symbols:
                    raise ValueError(
                        f"`merges` must have {(first, second)} before {(begin, end)}, as both make "
                        f"{piece!r} in the text {''.join(symbols)!r}."
                    )
    return never_made


def merged(text, ranks, limit=None) -> tuple[list[str], list[tuple[str, str]]]:
    """Merges a text as SentencePiece does.

    Args:
        text: The characters that stand for the bytes of a text.
        ranks: What `merge_ranks` returned.
        limit: The piece before whose rank merging stops. `None`: it does not stop before the end.

    Returns:
        The symbols that remain, and the merged pairs, in order.
    """
    symbols, pairs = list(text), []
    limit = ranks.get(limit, NEVER)
    orders = [ranks.get(one + other, NEVER) for one, other in itertools.pairwise(symbols)]
    while orders and min(orders) < limit:
        place = orders.index(min(orders))
        pairs.append(tuple(symbols[place : place + 2]))
        symbols[place : place + 2] = ["".join(pairs[-1])]
        del orders[place]
        for number in range(max(place - 1, 0), min(place + 1, len(orders))):
            orders[number] = ranks.get(symbols[number] + symbols[number + 1], NEVER)
    return symbols, pairs


def sentencepiece_model(pieces, ranks, unknown) -> bytes:
    """Returns the bytes of a SentencePiece model with the same ids and merges.

    Args:
        pieces: The tokens in the order of their ids.
        ranks: What `merge_ranks` returned.
        unknown: The token for text without a token of its own; it is never in a text.
    """
    kinds = messages.ModelProto.SentencePiece
    proto = messages.ModelProto()
    proto.trainer_spec.model_type = messages.TrainerSpec.BPE
    proto.trainer_spec.vocab_size = len(pieces)
    for name in ("bos_id", "eos_id", "pad_id"):
        setattr(proto.trainer_spec, name, -1)
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.precompiled_charsmap = NO_RULES
    proto.normalizer_spec.add_dummy_prefix = False
    proto.normalizer_spec.remove_extra_whitespaces = False
    proto.normalizer_spec.escape_whitespaces = False
    for number, piece in enumerate(pieces):
        is_text = piece in ranks or piece in BYTES
        kind = kinds.NORMAL if is_text else kinds.CONTROL
        if piece == unknown:
            kind = kinds.UNKNOWN
            proto.trainer_spec.unk_id, proto.trainer_spec.unk_piece = number, piece
        proto.pieces.add(piece=piece, score=-float(ranks.get(piece, -1) + 1), type=kind)
    return proto.SerializeToString()
