"""Random strings that are hard to tokenize, and the comparison of two tokenizers on texts."""

import random

SOME = "abcdeimnorstuvéüßñ東西中가힣אبक्षΣςşİıΩ  \t.,!?-'\"#[]$"
ALPHABETS = (
    SOME,
    SOME
    + "".join(map(chr, (*range(0x300, 0x370), 0x200B, 0x200D, 0xFEFF, 0xFFFD, 0, 7, 0x85, 0xA0))),
    "".join(map(chr, (*range(0x20, 0x250), 0x1E9E, 0xFB01, 0x2126, 0x212B, 0x1D15E, 0x2F800))),
)


def hostile(count, seed, points=None):
    """Returns random strings, half of them of arbitrary code points."""
    rng = random.Random(seed)
    everything = points or [chr(p) for p in range(0x110000) if not 0xD800 <= p < 0xE000]
    for _ in range(count):
        alphabet = rng.choice([*ALPHABETS, everything, everything])
        yield "".join(rng.choices(alphabet, k=rng.choice((1, 2, 5, 9, 20, 40))))


def rows(tokenizer, texts):
    found = []
    for begin in range(0, len(texts), 5000):
        found += tokenizer.encode(texts[begin : begin + 5000]).to_list()
    return found


def assert_equal(texts, ours, theirs):
    different = [(t, a, b) for t, a, b in zip(texts, ours, theirs, strict=True) if a != b]
    assert not different, (len(different), different[:3])
