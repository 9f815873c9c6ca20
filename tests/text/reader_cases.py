"""Vocabularies and texts, with the right answers, for readers in other languages than Python."""

import dataclasses
import functools
import random

import tensorflow as tf
import test_byte_bpe
import test_word_patterns
import test_wordpiece
from hostile_texts import hostile

from keras_transformer.text import letter_ranges, nfc, unicode_ranges
from keras_transformer.text.bert_normalizer import BertNormalizer
from keras_transformer.text.code_points import members
from keras_transformer.text.tokenizers import ByteBPETokenizer, Tokenizers, WordPieceTokenizer


def wordpiece(longest_word=100, **options):
    lowercase = options.get("lowercase", True)
    pieces = [*test_wordpiece.vocabulary([*test_wordpiece.LINES, *texts()[:400]], lowercase)]
    return WordPieceTokenizer(pieces, BertNormalizer(**options), longest_word=longest_word)


def llama3():
    """Some words are tokens that merges would split."""
    whole = ["abcd", "Ġtheatre", "x1", "ĠÃ©"]
    pieces = [*test_byte_bpe.made()._content()[0]]
    pieces += [word for word in whole if word not in pieces]
    pairs = test_byte_bpe.merges()
    return ByteBPETokenizer(pieces, pairs, pattern="llama3", whole_words=whole)


def with_found():
    """Tokens that are found in texts first, the longest of those at the same place."""
    found = ["  ", "    ", "\t\t", "the", "they", "<|a|>", "é.", "[x]", "中文"]
    pieces = [*test_byte_bpe.made()._content()[0]]
    pieces += [token for token in found if token not in pieces]
    pairs = test_byte_bpe.merges()
    return ByteBPETokenizer(pieces, pairs, found=found, prefix_space=True, starts_with_bos=False)


def with_silent(**options):
    """Tokens that are decoded to nothing; one is spelled like text."""
    silent = ["<|0.00|>", "<|0.02|>", "ĠĠsilentĠ"]
    pieces, pairs = test_byte_bpe.made()._content()[0], test_byte_bpe.merges()
    return ByteBPETokenizer([*pieces, *silent], pairs, no_text=silent, **options)


# The fast tests run the fifth and the last of them.
VOCABULARIES = {
    "cased": lambda: wordpiece(lowercase=False),
    "short": lambda: wordpiece(longest_word=7, clean_text=False, strip_accents=False),
    "accents": lambda: wordpiece(lowercase=False, strip_accents=True, handle_chinese_chars=False),
    "gpt2": test_byte_bpe.made,
    "wordpiece": wordpiece,
    "gpt2_digits": lambda: test_byte_bpe.made(pattern="gpt2_digits", prefix_space=True),
    "llama3": llama3,
    "found": with_found,
    "incomplete": lambda: test_byte_bpe.incomplete(whole_words=("que",)),
    "qwen2": lambda: with_silent(pattern="qwen2", normalization="nfc"),
}


@functools.cache
def vocabulary(name):
    return VOCABULARIES[name]()


@dataclasses.dataclass(frozen=True)
class Answers:
    """The answers of a tokenizer to texts, and to rows of ids.

    Args:
        ids: Token ids of each text, without marks.
        places: For each token the characters at which its word begins and ends, counted in UTF-16.
        texts: The text of each row of ids.
    """

    ids: list
    places: list
    texts: list


def answers(tokenizer, texts, rows):
    ids, begins, ends = (x.to_list() for x in tokenizer.tokenize_with_words(texts))
    places = [
        [[place[begin], place[end]] for begin, end in zip(*row, strict=True)]
        for place, *row in zip(map(utf_16_places, texts), begins, ends, strict=True)
    ]
    decoded = [text.decode() for text in tokenizer.decode(tf.ragged.constant(rows)).numpy()]
    return Answers(ids, places, decoded)


def utf_16_places(text):
    """Returns a dictionary from bytes of UTF-8 to UTF-16 units of the beginnings of characters."""
    places, byte, unit = {0: 0}, 0, 0
    for character in text:
        byte += len(character.encode())
        unit += 1 + (character > "\uffff")
        places[byte] = unit
    return places


def edges():
    """Returns each first and last code point of each class, and their neighbours, as characters."""
    names = ["REMOVED", "SPACES", "MARKS", "PUNCTUATION", "ORDERED", "WHOLE", "APART"]
    ranges = [getattr(unicode_ranges, name) for name in names]
    names = "LETTERS", "NUMBERS", "NEW_DIGITS", "COMBINING", "UPPERCASE_LETTERS"
    ranges += [getattr(letter_ranges, name) for name in names]
    ranges += [[edge[:2] for edge in unicode_ranges.LOWERCASE], nfc.code_points()["seconds"]]
    points = {
        edge + near for pairs in ranges for pair in pairs for edge in pair for near in (-1, 0, 1)
    }
    return [chr(p) for p in sorted(points) if 0 <= p < 0x110000 and not 0xD800 <= p < 0xE000]


@functools.cache
def texts():
    """Texts that no user types, with each edge of each class of code points between others."""
    rng = random.Random(4)
    around = rng.choices(
        ["a{}1", " {} ", "e{}\u0301", "{0}{0}", "'{}", "\n{}x", "{}\u0323"], k=9999
    )
    near = [form.format(edge) for form, edge in zip(around, edges(), strict=False)]
    newer = [chr(p) for r in ("APART", "WHOLE") for p in members(getattr(unicode_ranges, r))]
    marks = "\u0301\u0323\u0307\u0345e가\u11a8" + "".join(newer)
    ordered = ["".join(rng.choices(marks, k=6)) for _ in range(300)]
    lines = [*test_wordpiece.LINES, *test_byte_bpe.LINES, *test_word_patterns.LINES]
    many = [*test_byte_bpe.quoted(150, 5), *test_word_patterns.tight(150, 6), *hostile(600, 7)]
    korean = ["".join(rng.choices(test_word_patterns.KOREAN, k=5)) for _ in range(50)]
    found = ["the they  theyx    é.é. [x] <|a|><|a| >\t\t\t 中文字 \0the\0"]
    lost = ["que", " que queque", "tqhe \0the", *test_byte_bpe.odd(50, 8)]
    return [*lines, *many, *near, *ordered, *korean, *found, *lost]


def rows(tokenizer):
    """Returns rows of ids at random, also such as no text has; some end before their end."""
    rng = random.Random(5)
    ids = range(tokenizer.vocab_size)
    ends = [[], [tokenizer.eos_id], [tokenizer.eos_id, *ids[:9]], [tokenizer.pad_id] * 3]
    return [[*rng.choices(ids, k=k % 13), *rng.choice(ends)] for k in range(1, 300)]


def members_of(tokenizer):
    """Returns the members of a file's archive with the vocabulary, a dictionary of bytes."""
    both = Tokenizers.of(tokenizer)
    return both.files() | both.code_points()
