"""Random texts that tokenizers find hard, as bytes: all planes of Unicode, and invalid UTF-8."""

import random

CODE_POINTS, SURROGATES = 0x110000, range(0xD800, 0xE000)
LONGEST = 100_000  # characters of the longest words
EVERY = 100_000  # one text of so many is such a word
SPACES = "\t\n\v\f\r \x1c\x1f\x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"
CONTROLS = "".join(
    map(chr, (*range(0x20), *range(0x7F, 0xA0), 0xAD, *range(0x200B, 0x2010),
              *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFE),
              0xE0001, *range(0xE0020, 0xE0080)))
)  # fmt: skip
# Letters, and marks that combine with the character before them.
BASES = "aeiounAEIOUNßıİςΣσeéçдйиאبعकनกาてカ가각1²Ⅳ"
MARKS = "".join(
    map(chr, (*range(0x300, 0x370), *range(0x591, 0x5BE), *range(0x64B, 0x660), 0x93C, 0x94D,
              0xE31, 0xE34, 0x1AB0, 0x1DC0, 0x20D0, 0x20E3, 0x3099, 0x309A, 0xFE20, 0x1D165))
)  # fmt: skip
RIGHT_TO_LEFT = "".join(
    map(chr, (*range(0x5D0, 0x5EB), *range(0x621, 0x64B), *range(0x660, 0x66A),
              *range(0x200E, 0x2010), *range(0x202A, 0x202F), 0x20, 0x20, 0x20, 0xFB1D, 0xFDFA,
              *range(0xFE80, 0xFEFD), *range(0x10900, 0x10916), *range(0x1E900, 0x1E944)))
)  # fmt: skip
EMOJI = (*range(0x1F600, 0x1F650), *range(0x1F466, 0x1F46A), 0x2764, 0x1F525, 0x1F3F4, 0x2642)
JOINERS = ("\u200d", "\ufe0f", "\ufe0e", "\U0001f3fb", "\U0001f3ff", "\u20e3", "")
FLAGS = range(0x1F1E6, 0x1F200)
MARKUP = "0123456789.,;:!?'\"-_()[]{}<>@#$%^&*+=/\\|~`«»„“”‘’…–—₂½€№"
CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "’s")
# Byte sequences that are not valid UTF-8: surrogates, numbers that are too large or written too
# long, bytes that continue nothing, and characters that end too early.
INVALID = (b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xed\xa0\xbd\xed\xb8\x80", b"\xf4\x90\x80\x80",
           b"\xc0\xaf", b"\xe0\x80\xaf", b"\x80", b"\xbf\xbf", b"\xc3", b"\xe4\xb8",
           b"\xf0\x9f\x98", b"\xfe", b"\xff")  # fmt: skip


def hostile(count, seed, lines, longest=LONGEST, every=EVERY, invalid=True):
    """Yields random texts, bytes.

    Args:
        count: Number of texts.
        seed: Integer; the same arguments always give the same texts.
        lines: Real texts, strings, of which some are changed at random.
        longest, every: Number of characters of the longest words, one in `every` texts.
        invalid: Whether one text in ten is invalid UTF-8.
    """
    rng = random.Random(seed)
    kinds = [_anything, _block, _controls, _marks, _right_to_left, _emoji, _words, _spaces, _long]
    for number in range(count):
        kind = rng.randrange(10)
        if number % every == every // 2:
            text = _huge(rng, longest)
        elif kind == len(kinds):
            text = _mutated(rng, lines)
        else:
            text = kinds[kind](rng)
        text = text.encode()
        yield _broken(rng, text) if invalid and rng.random() < 0.1 else text


def _anything(rng):
    return "".join(_point(rng) for _ in range(_size(rng)))


def _block(rng):
    """Characters of one block of 256; half of the blocks are of the first plane's alphabets."""
    first = rng.randrange(0x30 if rng.random() < 0.5 else CODE_POINTS // 256) * 256
    if first in SURROGATES:
        first = 0
    alphabet = [*map(chr, range(first, first + 256)), *" " * 30]
    return "".join(rng.choices(alphabet, k=_size(rng)))


def _controls(rng):
    alphabet = CONTROLS + "abc XY,.ä中 "
    return "".join(rng.choices(alphabet, k=_size(rng)))


def _marks(rng):
    size = rng.choice((1, 2, 4, 8))
    return "".join(
        rng.choice(BASES + " ") + "".join(rng.choices(MARKS, k=rng.choice((0, 1, 1, 2, 5))))
        for _ in range(size)
    )


def _right_to_left(rng):
    return "".join(rng.choices(RIGHT_TO_LEFT, k=_size(rng)))


def _emoji(rng):
    parts = []
    for _ in range(rng.choice((1, 2, 4, 8))):
        if rng.random() < 0.2:
            parts.append("".join(chr(rng.choice(FLAGS)) for _ in range(rng.choice((1, 2, 3)))))
        else:
            parts.append(chr(rng.choice(EMOJI)) + rng.choice(JOINERS))
        parts.append(rng.choice(("", "", " ", "a", "\u200d")))
    return "".join(parts)


def _words(rng):
    """Words, numbers, punctuation and contractions, not always separated by spaces."""
    parts = []
    for _ in range(rng.choice((2, 5, 9))):
        alphabet = rng.choice(("abcdefghijklmnopqrstuvwxyz", "AÄÖÜßéñçabc", MARKUP, "0123456789"))
        parts.append("".join(rng.choices(alphabet, k=rng.choice((1, 2, 3, 6)))))
        parts.append(rng.choice((*CONTRACTIONS, "", " ", " ", "  ")))
    return "".join(parts)


def _spaces(rng):
    return "".join(rng.choices(SPACES + "aB1,", k=_size(rng)))


def _long(rng):
    """Words of about the length at which WordPiece gives up."""
    alphabet = rng.choice(("ab", "aé", "中a", "x", "a\u0301", "-a", "가나"))
    return "".join(rng.choices(alphabet, k=rng.choice((98, 99, 100, 101, 102, 150))))


def _huge(rng, longest):
    alphabet = rng.choice(("abcdefgh", "a", "中文字", "e\u0301", "\U0001f600\u200d", "!?", "aA1"))
    return "".join(rng.choices(alphabet, k=longest))


def _mutated(rng, lines):
    letters = list(rng.choice(lines))
    for _ in range(rng.choice((0, 1, 3))):
        place = rng.randrange(len(letters) + 1)
        change = rng.choice(("insert", "delete", "swapcase", "twice"))
        if change == "insert" or place == len(letters):
            letters.insert(place, _point(rng))
        elif change == "delete":
            del letters[place]
        elif change == "swapcase":
            letters[place] = letters[place].swapcase()
        else:
            letters[place] *= 2
    return "".join(letters)


def _broken(rng, text):
    place = rng.randrange(len(text) + 1)
    return text[:place] + rng.choice(INVALID) + text[place:]


def _point(rng):
    """A character; a third of them are of the first plane, where most assigned ones are."""
    point = rng.randrange(0x10000 if rng.random() < 0.33 else CODE_POINTS)
    return "\ufffd" if point in SURROGATES else chr(point)


def _size(rng):
    return rng.choice((1, 2, 5, 9, 20, 40))
