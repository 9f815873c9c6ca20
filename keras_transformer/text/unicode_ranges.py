"""Classes of code points in Hugging Face's tokenizers.

The versions of Unicode in these tokenizers differ from Python's: version 8 or 9 in BERT's classes,
version 16 in the classes of patterns. The classes here are therefore Python's, without code points
that are too new and with code points that are too old. They were found by running tokenizers 0.23
on every code point, and are the same with every Python that this package supports.
"""

import collections
import functools
import itertools
import unicodedata

from keras_transformer.text.code_points import members, ranges_of

ASSIGNED = (*range(0x40000), *range(0xE0000, 0xE1000))  # without planes for private use


def ranges(text):
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


def of_categories(categories, more="", without=""):
    """Returns the ranges of categories such as `"Mc Me"`, with others and without others."""
    points = {*itertools.chain(*(_categories()[name] for name in categories.split()))}
    return tuple(ranges_of(points - members(ranges(without)) | members(ranges(more))))


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
REMOVED = ranges(
    "0-8 b-c e-1f 7f-9f ad 600-605 61c 6dd 70f 180e 200b-200f 202a-202e 2060-2064 2066-206f "
    "e000-f8ff feff fff9-fffb fffd 110bd 1bca0-1bca3 1d173-1d17a e0001 e0020-e007f f0000-ffffd "
    "100000-10fffd"
)
# White space, which separates words.
SPACES = ranges("9-d 20 85 a0 1680 2000-200a 2028-2029 202f 205f 3000")
# Nonspacing marks, which `strip_accents` removes.
MARKS = of_categories("Mn", MOVED, f"{NEWER} {KEPT}")
# Marks that are not nonspacing. Together with `MARKS` they are all combining marks.
OTHER_MARKS = of_categories("Mc Me", KEPT, f"{NEWER} {MOVED}")
# Punctuation, with the symbols of ASCII; each mark is a word by itself.
PUNCTUATION = of_categories("Pc Pd Ps Pe Pi Pf Po", "24 2b 3c-3e 5e 60 7c 7e 166d 111c9", NEWER)
# Marks that have a place in the canonical order; newer marks have none here.
ORDERED = tuple(ranges_of(p for p in members(MARKS + OTHER_MARKS) if unicodedata.combining(chr(p))))
# Letters that newer versions of Unicode decompose; they are not decomposed here.
WHOLE = ranges("105c9 105e4 11383-113c8 11938 16121-16128 16d68-16d6a")
# Others that newer versions decompose for compatibility only.
WHOLE_COMPATIBLE = ranges(
    "32ff a7f1-a7f4 ab69 10781-10785 10787-107b0 107b2-107ba 1ccd6-1ccf9 1e030-1e06d 1f16c "
    "1fbf0-1fbf9"
)
# Code points that newer versions compose with others or move past them; they stay in place here.
APART = ranges(
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
