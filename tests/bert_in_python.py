"""BERT's tokenizer, one character at a time, as in the code of the BERT paper.

It uses Python's Unicode data and shares nothing with the package: no table of code points and no
TensorFlow.
"""

import unicodedata

CHINESE = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


def clean(text):
    """Removes control characters and replaces all white space by spaces."""
    kept = []
    for letter in text:
        category = unicodedata.category(letter)
        if letter in "\t\n\r" or category in ("Zs", "Zl", "Zp"):
            kept.append(" ")
        elif letter not in "\0\ufffd" and category not in ("Cc", "Cf", "Co"):
            kept.append(letter)
    return "".join(kept)


def is_punctuation(letter):
    ascii_mark = letter.isascii() and letter.isprintable() and not letter.isalnum()
    return (ascii_mark and letter != " ") or unicodedata.category(letter).startswith("P")


def words(text, lowercase):
    text = clean(text)
    spaced = "".join(
        f" {letter} " if any(a <= ord(letter) <= b for a, b in CHINESE) else letter
        for letter in text
    )
    if lowercase:
        spaced = unicodedata.normalize("NFD", spaced)
        spaced = "".join(letter for letter in spaced if unicodedata.category(letter) != "Mn")
        spaced = "".join(letter.lower() for letter in spaced)
    return "".join(f" {x} " if is_punctuation(x) else x for x in spaced).split(" ")


def pieces(word, vocabulary):
    """Splits a word greedily into the longest known pieces, or returns the unknown piece."""
    found, start = [], 0
    if len(word) > 100:
        return ["[UNK]"]
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in vocabulary:
                found.append(prefix + word[start:end])
                start = end
                break
        else:
            return ["[UNK]"]
    return found


def ids(text, vocabulary, lowercase):
    """Returns the ids of a text between `[CLS]` and `[SEP]`; `vocabulary` maps pieces to ids."""
    found = [piece for word in words(text, lowercase) if word for piece in pieces(word, vocabulary)]
    return [vocabulary[piece] for piece in ("[CLS]", *found, "[SEP]")]
