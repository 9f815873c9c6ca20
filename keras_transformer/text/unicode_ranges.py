"""Classes of code points in Hugging Face's tokenizers.

Those tokenizers follow other versions of Unicode than Python does: BERT's classes are those of
version 8 or 9, and the classes of patterns those of version 16. The classes are therefore Python's,
without what is too new and with what is too old. They were found by running tokenizers 0.23 on
every code point, and are the same with every Python that this package supports.
"""

import collections
import functools
import itertools
import unicodedata

from keras_transformer.text.code_points import members, ranges_of

ASSIGNED = (*range(0x40000), *range(0xE0000, 0xE1000))  # without planes for private use


def _ranges(text):
    """Returns pairs of first and last code point from a text such as `"41-5a 5f"`."""
    pairs = (item.split("-") for item in text.split())
    return tuple((int(pair[0], 16), int(pair[-1], 16)) for pair in pairs)


@functools.cache
def _categories():
    """Returns the code points of each of Python's general categories."""
    points = collections.defaultdict(list)
    for point, name in zip(ASSIGNED, map(unicodedata.category, map(chr, ASSIGNED)), strict=True):
        points[name].append(point)
    return points


def _of(categories, more="", without=""):
    """Returns the ranges of categories such as `"Mc Me"`, with others and without others."""
    points = {*itertools.chain(*(_categories()[name] for name in categories.split()))}
    return tuple(ranges_of(points - members(_ranges(without)) | members(_ranges(more))))


# Marks and punctuation since Unicode 9, with the code points between them that are neither.
NEWER = (
    "61d 7fd 898-8d3 9fd-9fe a76 afa-aff b55 c04-c3c c77 c84 cf3-d00 d3b-d3c d81 eba ece 1715 "
    "180f 1abf-1ace 1b7d-1b7e 1cf7 1df6-1dfa 2e43-2e5d a82c a8ff 10d24-10f89 11070-11074 110c2 "
    "11145-11146 111c9 111ce-111cf 11241 1133b 1144b-1145e 11660-1166c 116b9 1182c-11b09 "
    "11c41-11c71 11d31-11fff 12ff1-13455 16e97-16f4f 16f7f-16f87 16fe2-16ff1 1cf00-1cf46 "
    "1e08f-1e4ef 1e95e-1e95f"
)
# Nonspacing marks that `strip_accents` does not remove, most of them of Unicode 9.
KEPT = (
    "8d4-8e1 1885-1886 1cf2-1cf3 1dfb a8c5 a9bd 1123e 11438-1143f 11442-11444 11446 11c30-11c36 "
    "11c38-11c3d 11c3f 11c92-11ca7 11caa-11cb0 11cb2-11cb3 11cb5-11cb6 1e000-1e006 1e008-1e018 "
    "1e01b-1e021 1e023-1e024 1e026-1e02a 1e944-1e94a"
)
MOVED = "1734"  # a nonspacing mark before Unicode 14
# Removed by `clean_text`: control and format characters, private use, U+0000 and U+FFFD.
REMOVED = _ranges(
    "0-8 b-c e-1f 7f-9f ad 600-605 61c 6dd 70f 180e 200b-200f 202a-202e 2060-2064 2066-206f "
    "e000-f8ff feff fff9-fffb fffd 110bd 1bca0-1bca3 1d173-1d17a e0001 e0020-e007f f0000-ffffd "
    "100000-10fffd"
)
# White space, which separates words.
SPACES = _ranges("9-d 20 85 a0 1680 2000-200a 2028-2029 202f 205f 3000")
# Nonspacing marks, which `strip_accents` removes.
MARKS = _of("Mn", MOVED, f"{NEWER} {KEPT}")
# Marks that are not nonspacing. Together with `MARKS` they are all combining marks.
OTHER_MARKS = _of("Mc Me", KEPT, f"{NEWER} {MOVED}")
# Punctuation, with the symbols of ASCII; each mark is a word by itself.
PUNCTUATION = _of("Pc Pd Ps Pe Pi Pf Po", "24 2b 3c-3e 5e 60 7c 7e 166d 111c9", NEWER)
# Marks that have a place in the canonical order; newer marks have none here.
ORDERED = tuple(ranges_of(p for p in members(MARKS + OTHER_MARKS) if unicodedata.combining(chr(p))))
# Letters that newer versions of Unicode decompose; they are not decomposed here.
WHOLE = _ranges("105c9 105e4 11383-113c8 11938 16121-16128 16d68-16d6a")
# Others that newer versions decompose for compatibility only.
WHOLE_COMPATIBLE = _ranges(
    "32ff a7f1-a7f4 ab69 10781-10785 10787-107b0 107b2-107ba 1ccd6-1ccf9 1e030-1e06d 1f16c "
    "1fbf0-1fbf9"
)
# Code points that newer versions compose with others or move past them; they stay in place here.
APART = _ranges(
    "7fd 897-89f 8ca-8d3 9fe c3c d3b-d3c eba 1715 1abf-1ace 1df6-1dfa a82c 105d2 105da "
    "10d24-10d27 10d69-10d6d 10eab-10eac 10efd-10eff 10f46-10f50 10f82-10f85 11070 1133b 113b8 "
    "113bb 113c2 113c9 113ce-113d0 1145e 11839-1183a 11930 1193d-1193e 11943 119e0 11a34 11a47 "
    "11a99 11d42 11d44-11d45 11d97 11f41-11f42 1611e-16120 16129 1612f 16d67 16ff0-16ff1 1e08f "
    "1e130-1e136 1e2ae 1e2ec-1e2ef 1e4ec-1e4ef 1e5ee-1e5ef"
)
# Upper-case letters that older Pythons do not know: first, last, and distance to the lower case.
LOWERCASE = (
    (0x1C89, 0x1C89, 1),
    (0x2C2F, 0x2C2F, 48),
    (0xA7C0, 0xA7C0, 1),
    (0xA7CB, 0xA7CB, -42343),
    (0xA7CC, 0xA7CC, 1),
    (0xA7CE, 0xA7CE, 1),
    (0xA7D0, 0xA7D0, 1),
    (0xA7D2, 0xA7D2, 1),
    (0xA7D4, 0xA7D4, 1),
    (0xA7D6, 0xA7D6, 1),
    (0xA7D8, 0xA7D8, 1),
    (0xA7DA, 0xA7DA, 1),
    (0xA7DC, 0xA7DC, -42561),
    (0x10570, 0x1057A, 39),
    (0x1057C, 0x1058A, 39),
    (0x1058C, 0x10592, 39),
    (0x10594, 0x10595, 39),
    (0x10D50, 0x10D65, 32),
    (0x16EA0, 0x16EB8, 27),
)
# Letters and numbers, `\p{L}` and `\p{N}` in patterns.
LETTERS = _of(
    "Lu Ll Lt Lm Lo",
    "1c89-1c8a a7cb-a7cd a7da-a7dc 105c0-105f3 10d4a-10d65 10d6f-10d85 10ec2-10ec4 1123f-11240 "
    "11380-11389 1138b 1138e 11390-113b5 113b7 113d1 113d3 11bc0-11be0 11f02 11f04-11f10 "
    "11f12-11f33 1342f 13441-13446 13460-143fa 16100-1611d 16d40-16d6c 18cff 1b132 1b155 "
    "1df25-1df2a 1e030-1e06d 1e4d0-1e4eb 1e5d0-1e5ed 1e5f0 2b739 2ebf0-2ee5d 31350-323af",
)
NUMBERS = _of(
    "Nd Nl No",
    "10d40-10d49 116d0-116e3 11bf0-11bf9 11f50-11f59 16130-16139 16d70-16d79 1ccf0-1ccf9 "
    "1d2c0-1d2d3 1e4f0-1e4f9 1e5f1-1e5fa",
)
# Digits that a splitting at digits knows, and the patterns do not.
NEW_DIGITS = _ranges("11de0-11de9 16ff4-16ff6")
# Letters by their case, `\p{Lu}` and `\p{Lt}`, and `\p{Ll}`; and marks, `\p{M}`.
UPPERCASE_LETTERS = _of("Lu Lt", "1c89 a7cb-a7cc a7da a7dc 10d50-10d65")
LOWERCASE_LETTERS = _of("Ll", "1c8a a7cd a7db 10d70-10d85 1df25-1df2a")
COMBINING = _of(
    "Mn Mc Me",
    "897 cf3 ece 10d69-10d6d 10efc-10eff 11241 113b8-113c0 113c2 113c5 113c7-113ca 113cc-113d0 "
    "113d2 113e1-113e2 11f00-11f01 11f03 11f34-11f3a 11f3e-11f42 11f5a 13440 13447-13455 "
    "1611e-1612f 1e08f 1e4ec-1e4ef 1e5ee-1e5ef",
)
