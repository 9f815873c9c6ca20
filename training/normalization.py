"""Normalisation of the vocabularies that training learns, compiled to a SentencePiece model."""

import contextlib
import functools
import io
import os
import sys
import tempfile
import unicodedata
from collections.abc import Generator

from keras_transformer.text.code_points import members
from keras_transformer.text.sentencepiece_package import sentencepiece, sentencepiece_model_pb2

# All kinds of white space, which become a space; a line of text has no other control characters.
_SPACES = "\t\n\v\f\r\x85\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_NOTHING = "\u200b\ufeff"  # zero-width space, byte order mark
# Default_Ignorable_Code_Point of Unicode 17, DerivedCoreProperties.txt: soft hyphen, joiners, marks
# of direction, variation selectors, fillers and tags, all of which are invisible.
_IGNORABLE = members(
    [
        *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160)),
        *((0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E)),
        *((0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
        *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A)),
        (0xE0000, 0xE0FFF),
    ]
)


@contextlib.contextmanager
def rules_file(dropped="") -> Generator[str]:
    """Yields the path of a file with the rules, which is deleted afterwards.

    Args:
        dropped: Further characters that are removed from texts.
    """
    rules = dict.fromkeys(dropped, "") | dict(_rules())
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", delete=False, encoding="ascii") as file:
        for spelling, composed in sorted(rules.items()):
            file.write(f"{_hexadecimal(spelling)}\t{_hexadecimal(composed)}\n")
    try:
        yield file.name
    finally:
        os.unlink(file.name)


def drop_unseen(proto) -> None:
    """Adds rules to a model that remove the invisible characters that no piece of it has.

    They come from web pages and word processors. Training has not seen them, so they would be
    unknown, and so would the word around a soft hyphen. Those that training has seen remain, such
    as the joiners of Persian and Hindi.

    Args:
        proto: The `ModelProto` of a trained model, whose normalisation is changed.
    """
    seen = {*map(ord, "".join(piece.piece for piece in proto.pieces))}
    unseen = "".join(map(chr, sorted(_IGNORABLE - seen)))
    proto.normalizer_spec.precompiled_charsmap = _compiled(unseen)


@functools.lru_cache(8)
def _compiled(dropped):
    """Returns the compiled rules, bytes, as SentencePiece makes them for a tiny model."""
    model = io.BytesIO()
    with rules_file(dropped) as path:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a"]),
            model_writer=model,
            model_type="char",
            vocab_size=9,
            hard_vocab_limit=False,
            normalization_rule_tsv=path,
            num_threads=1,
            minloglevel=2,
        )
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


@functools.cache
def _rules():
    """Returns the pairs of a spelling and its normalised form, in a fixed order."""
    rules = dict.fromkeys(_SPACES, " ") | dict.fromkeys(_NOTHING, "")
    for character in map(chr, range(sys.maxunicode + 1)):
        decomposed = unicodedata.normalize("NFD", character)
        # Hangul would add 11,000 rules for syllables, which keyboards compose themselves.
        if decomposed != character and not "가" <= character <= "힣":
            composed = unicodedata.normalize("NFC", character)
            partly = unicodedata.decomposition(character).split()  # such as "ẹ" and "^" for "ệ"
            for spelling in (decomposed, "".join(chr(int(code, 16)) for code in partly), character):
                if spelling != composed:
                    rules.setdefault(spelling, composed)
    return sorted(rules.items())


def _hexadecimal(text):
    return " ".join(f"{ord(character):X}" for character in text)
