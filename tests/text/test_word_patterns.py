"""Words and normal forms in the graph against regular expressions, Python and `tokenizers`."""

import functools
import itertools
import random
import unicodedata

import bpe_in_python
import pytest
import tensorflow as tf
from test_byte_bpe import QUOTES
from test_wordpiece import assert_equal, hostile, stable

from keras_transformer.text import word_patterns
from keras_transformer.text.code_points import decode_with_places
from keras_transformer.text.nfc import nfc

LINES = [
    "A dog's 'sun 'S'T 'LLama I'VE DON'T 'ſx", "''s !'s 's's \t's\n's", "", " ", "\n", "\r\n",
    "12 345678½ ²x 1a2b33", "a  b   1  !  \t!", "!\n\n \n\t\n x", "!a !!a  !a \t!a\n!a", "\n\n  \n",
    " \u00a0a\u00a0!\u00a01\u00a0", "x\u3000\u2028y \u200bz", "!a\nb?\r\nc ...\r\n\r\n d",
]  # fmt: skip
LETTERS = QUOTES + "\r\n\nSTDMſ"
CASES = "abAB\u01c5\u02b0中\u0301\u0301!!//.\n\r  \t1"
KOREAN = "".join(map(chr, (*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A8, 0x11C3))))


def tight(count, seed):
    """Random strings of the characters that the patterns distinguish."""
    rng = random.Random(seed)
    lengths = (2, 3, 5, 9, 20)
    return [
        "".join(rng.choices(rng.choice((LETTERS, CASES)), k=rng.choice(lengths)))
        for _ in range(count)
    ]


def split(pattern, texts):
    """The words of texts in the graph."""
    points = tf.strings.unicode_decode(texts, "UTF-8")
    starts = word_patterns.get(pattern).word_starts(points).to_list()
    words = []
    for text, row in zip(texts, starts, strict=True):
        places = [place for place, begins in enumerate(row) if begins]
        assert not text or places[0] == 0
        words.append([text[a:b] for a, b in itertools.pairwise([*places, len(text)])])
    return words


@functools.cache
def strings():
    """Random strings of code points that no version of Python knows in another way."""
    return [*hostile(500, 2, stable())]


@pytest.mark.parametrize("pattern", word_patterns.PATTERNS)
def test_words_are_those_of_the_pattern(pattern):
    texts = [*LINES, *tight(2000, 1), *strings()]
    expected = [[w for w in bpe_in_python.words_of(text, pattern) if w] for text in texts]
    assert_equal(texts, split(pattern, texts), expected)
    assert word_patterns.get(pattern).regex == bpe_in_python.REGEXES.get(pattern, GPT2)


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def test_an_unknown_pattern_is_named():
    with pytest.raises(ValueError, match="`pattern` must be one of gpt2, gpt2_digits, llama3, qwe"):
        word_patterns.get("gpt4")


def marked(count, seed):
    """Random strings of letters with marks, in any order, and of letters of Korean syllables."""
    rng = random.Random(seed)
    old = unicodedata.ucd_3_2_0
    points = [chr(p) for p in (*range(0x3100), *range(0xF900, 0xFB50), *range(0x1D150, 0x1D1C0))]
    letters = [p for p in points if old.decomposition(p) and "<" not in old.decomposition(p)]
    marks = [p for p in points if old.combining(p)]
    for _ in range(count):
        few = [*"aeiouAEO ", *rng.choices(letters, k=9), *rng.choices(marks, k=12)]
        alphabet = rng.choice([few, letters, marks, KOREAN + "가각한"])
        yield "".join(rng.choices(alphabet, k=rng.choice((1, 2, 3, 5, 9, 20))))


@tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
def composed(texts):
    found = nfc(*decode_with_places(texts))
    ends = found.points.with_values(found.after)
    return (
        tf.strings.unicode_encode(found.points, "UTF-8"),
        found.points.with_values(found.place),
        ends,
    )


def normal(texts):
    return [text.decode() for text in composed(texts)[0].numpy()]


@pytest.mark.slow
def test_normal_forms():
    texts = [
        *("cafe\u0301 e\u0323\u0302 a\u0302\u0323", "\u0301a", "\u212b\u2126\u0958", "각각ᆨ"),
        *(*marked(2000, 1), *strings(), "", "plain"),
    ]
    assert_equal(texts, normal(texts), [unicodedata.normalize("NFC", text) for text in texts])
    # Two texts never meet: the second one begins with a mark.
    assert normal(["a", "\u0301"]) == ["a", "\u0301"]


def test_newer_letters_and_marks_stay_as_they_are():
    """Unicode 16 composes the first two, and reorders the marks of the others."""
    texts = ["\U00011935\U00011930", "\U000105d2\u0307", "a\u1ac1\u0316", "a\u0897\u0316"]
    assert normal(texts) == texts


def test_characters_that_are_composed_share_the_bytes_of_their_group():
    text = "xe\u0301\u0323y"  # 1, 1, 2, 2 and 1 bytes
    _, place, after = composed([text, ""])
    assert place.to_list() == [[0, 1, 1, 6], []] and after.to_list() == [[1, 6, 6, 7], []]


@pytest.mark.slow
def test_a_letter_with_100_000_marks():
    text = "e" + "\u0301\u0323" * 50_000
    assert normal([text]) == ["\u1eb9" + "\u0323" * 49_999 + "\u0301" * 50_000]


@pytest.mark.slow
@pytest.mark.parametrize("pattern", word_patterns.PATTERNS)
def test_words_are_those_of_the_package_tokenizers(pattern):
    """Every code point between others, and 100,000 strings of those that patterns distinguish."""
    pre = pytest.importorskip("tokenizers").pre_tokenizers
    regex = pytest.importorskip("tokenizers").Regex
    gpt2 = pre.ByteLevel(add_prefix_space=False)
    splitter = {"gpt2": gpt2, "gpt2_digits": pre.Sequence([pre.Digits(True), gpt2])}.get(pattern)
    splitter = splitter or pre.Split(regex(bpe_in_python.REGEXES[pattern]), behavior="isolated")
    points = [chr(p) for p in range(1, 0x110000) if not 0xD800 <= p < 0xE000]
    texts = tight(100_000, 5) + [f"a{p}b1{p}1 {p}!{p}'{p}" for p in points[::7]]
    for begin in range(0, len(texts), 20_000):
        some = texts[begin : begin + 20_000]
        expected = [[t[a:b] for _, (a, b) in splitter.pre_tokenize_str(t)] for t in some]
        assert_equal(some, split(pattern, some), expected)


@pytest.mark.slow
def test_normal_forms_are_those_of_the_package_tokenizers():
    """Every code point and 100,000 strings of letters and marks."""
    theirs = pytest.importorskip("tokenizers").normalizers.NFC()
    points = [chr(p) for p in range(1, 0x110000) if not 0xD800 <= p < 0xE000]
    texts = [*points, *marked(100_000, 5), *hostile(20_000, 6)]
    assert_equal(texts, normal(texts), [theirs.normalize_str(text) for text in texts])
