"""BERT's normalisation and splitting into words, as Hugging Face's tokenizers compute them.

Both map one code point at a time: control characters are removed, accents are stripped, letters
become lower case, and each Chinese character and punctuation mark gets spaces around it.
"""

import dataclasses
import functools
import unicodedata
from typing import Any

from keras_transformer.text.code_points import CODE_POINTS, PAGE, CodePointMap, members
from keras_transformer.text.unicode_ranges import (
    LOWERCASE,
    MARKS,
    PUNCTUATION,
    REMOVED,
    SPACES,
    WHOLE,
)

SPACE = 0x20
CHINESE = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    # The second range below begins where Hugging Face's does; BERT's own begins at U+2B820.
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
SURROGATES = range(0xD800, 0xE000)  # do not occur in UTF-8


@dataclasses.dataclass(frozen=True)
class BertNormalizer:
    """Options of BERT's normalisation, with their names in `tokenizer.json`.

    Args:
        clean_text: Whether to remove control characters and replace all white space by spaces.
        handle_chinese_chars: Whether each Chinese character is a word of its own.
        strip_accents: Whether to remove accents. `None`: the value of `lowercase`.
        lowercase: Whether to convert letters to lower case.
    """

    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    lowercase: bool = True

    def changes(self) -> dict[int, tuple[int, ...]]:
        """Returns a dictionary from the code points that change to their replacements."""
        return _changes(self)

    def code_points(self) -> dict[str, Any]:
        """Returns the classes by which another program computes the same.

        Each is a list of the first and the last code points of ranges: `"removed"` by
        `clean_text`, `"spaces"`, `"chinese"`, `"punctuation"`, `"marks"`, which `strip_accents`
        removes, and `"whole"`, letters that it does not decompose. `"lowercase"` has the distance
        to the lower case as a third number, for letters that programs may not know.
        """
        return {
            "removed": REMOVED,
            "spaces": SPACES,
            "chinese": CHINESE,
            "punctuation": PUNCTUATION,
            "marks": MARKS,
            "whole": WHOLE,
            "lowercase": LOWERCASE,
        }

    def translation(self) -> "TranslationTable":
        """Returns the same map as a table of `str.translate`, which needs no TensorFlow."""
        return TranslationTable(self)

    def map(self) -> CodePointMap:
        """Returns the map from strings to words separated by spaces."""
        return _map(self)


@functools.lru_cache(8)
def _map(options):
    return CodePointMap(_changes(options))


def _changes(options):
    change = _change_of(options)
    pairs = ((point, change(point)) for point in changeable())
    return {point: sequence for point, sequence in pairs if sequence is not None}


@functools.cache
def changeable() -> list[int]:
    """Returns the code points that change with some options, in order, and others beside them."""
    classes = (REMOVED, SPACES, CHINESE, PUNCTUATION, MARKS, [(a, b) for a, b, _ in LOWERCASE])
    points = set().union(*map(members, classes))
    for first in range(0, CODE_POINTS, PAGE):  # a page at a time: there are a million code points
        page = range(first, first + PAGE)
        if not _is_plain("".join(map(chr, page))):
            points.update(page)
    return sorted(points.difference(SURROGATES))


def _change_of(options):
    """Returns a function from a code point to its replacement, `None` if it does not change."""
    removed, spaces, punctuation = (members(r) for r in (REMOVED, SPACES, PUNCTUATION))
    chinese = members(CHINESE) if options.handle_chinese_chars else frozenset()
    spelled = _speller(options)
    respelled = members(MARKS) | members((a, b) for a, b, _ in LOWERCASE)
    removed = removed if options.clean_text else frozenset()

    def change(point):
        if point in removed:
            return ()
        if point in spaces:
            return (SPACE,)
        around = (SPACE,) * (point in chinese)
        if point not in respelled and _is_plain(chr(point)):
            around = around or (SPACE,) * (point in punctuation)
            return (*around, point, *around) if around else None
        sequence = around
        for letter in map(ord, spelled(chr(point))):
            sequence += (SPACE, letter, SPACE) if letter in punctuation else (letter,)
        sequence += around
        return None if sequence == (point,) else sequence

    return change


class TranslationTable(dict):
    """The table of `str.translate` of a `BertNormalizer`, which grows by what texts contain.

    Args:
        options: The `BertNormalizer`.
    """

    def __init__(self, options):
        super().__init__()
        self._change = _change_of(options)

    def __missing__(self, point: int) -> str:
        sequence = self._change(point)
        self[point] = text = chr(point) if sequence is None else "".join(map(chr, sequence))
        return text


def _is_plain(letter):
    """Returns whether a letter, or each of several, has no lower case and no accents of its own."""
    return letter == letter.lower() and unicodedata.is_normalized("NFD", letter)


def _speller(options):
    """Returns a function that strips accents and lowercases a character as the options say."""
    marks, whole = members(MARKS), members(WHOLE)
    lower = {chr(p): chr(p + shift) for a, b, shift in LOWERCASE for p in range(a, b + 1)}
    strips = options.lowercase if options.strip_accents is None else options.strip_accents

    def spell(letter):
        if strips and ord(letter) not in whole:
            parts = unicodedata.normalize("NFD", letter)
            letter = "".join(part for part in parts if ord(part) not in marks)
        if options.lowercase:
            letter = "".join(lower.get(part) or part.lower() for part in letter)
        return letter

    return spell
