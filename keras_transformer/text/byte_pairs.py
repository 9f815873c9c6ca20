"""Bytes as printable characters, and byte-pair merges as a SentencePiece model.

SentencePiece merges two neighbours if their text is a piece, and Hugging Face's tokenizers if the
two are a pair of the list. Both compute the same if SentencePiece makes no piece from another pair
than its own: `check_merges`.
"""

import tensorflow as tf

from keras_transformer.tensors import Tensor
from keras_transformer.text.sentencepiece_model import messages

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
        The bytes, int32 `[M]`; the place of the code point of each, `[M]`; and the number of bytes
        of each code point, `[N]`.
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


def merge_ranks(pieces, merges) -> dict[str, int]:
    """Returns the place in the list of merges of each piece that a merge makes, a dictionary.

    Args:
        pieces: The tokens, strings.
        merges: Pairs of them.

    Raises:
        ValueError: If a character of a byte is no piece, or a merge does not fit the pieces.
    """
    known = {*pieces}
    missing = [character for character in CHARACTERS if character not in known]
    if missing:
        raise ValueError(
            f"`pieces` must have a piece for each byte. Received: {len(missing)} are missing, such "
            f"as {missing[0]!r}."
        )
    ranks = {}
    for number, pair in enumerate(merges):
        if len(pair) != 2 or not {*pair, "".join(pair)} <= known:
            raise ValueError(
                f"`merges` must be pairs of pieces that together form a piece. Received: {pair!r}."
            )
        if ranks.setdefault("".join(pair), number) != number:
            raise ValueError(
                f"`merges` must make each piece once. Received twice: {''.join(pair)!r}."
            )
    return ranks


def check_merges(merges, ranks) -> None:
    """Refuses merges that SentencePiece would not follow.

    Each piece is made of its characters, as SentencePiece makes it, and each step must be a pair of
    the list. Then this holds for every text: the first other pair in a text would be one inside
    of its piece alone, since the steps before it did not cross the ends of that piece.

    Args:
        merges: Pairs of pieces.
        ranks: What `merge_ranks` returned.

    Raises:
        ValueError: With the first piece that would be made of another pair.
    """
    pairs = {"".join(pair): tuple(pair) for pair in merges}
    last = len(ranks)
    for piece in pairs:
        symbols = list(piece)
        while len(symbols) > 1:
            texts = [one + other for one, other in zip(symbols, symbols[1:], strict=False)]
            place = min(range(len(texts)), key=lambda n: ranks.get(texts[n], last))
            if texts[place] not in ranks:
                break
            pair = symbols[place], symbols[place + 1]
            if pair != pairs[texts[place]]:
                raise ValueError(
                    f"`merges` must make the piece {texts[place]!r} of the pair by which it is "
                    f"reached. Received: {pairs[texts[place]]}, and it is reached by {pair}."
                )
            symbols[place : place + 2] = [texts[place]]


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
