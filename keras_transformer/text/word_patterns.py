r"""Words of byte-level BPE in the graph, without a regular expression.

The patterns look ahead, `\s+(?!\S)`, which TensorFlow's regular expressions cannot do. Whether a
code point begins a word depends on the classes of its neighbours, on runs of white space and
digits, and on contractions, such as `'ve`, that end before it.
"""

import functools
import re

import numpy as np

from keras_transformer.checks import check_choice
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor
from keras_transformer.text.cased_words import CodePoints, word_starts
from keras_transformer.text.code_points import (
    CODE_POINTS,
    CodePointTable,
    latest,
    members,
    ranges_of,
    shifted,
)
from keras_transformer.text.letter_ranges import (
    COMBINING,
    LETTERS,
    LOWERCASE_LETTERS,
    NEW_DIGITS,
    NUMBERS,
    UPPERCASE_LETTERS,
)
from keras_transformer.text.unicode_ranges import SPACES

SPACE, LETTER, NUMBER, OTHER, EDGE = range(5)  # classes; the edge of a text is none of its own
CLASSES = {SPACE: SPACES, LETTER: LETTERS, NUMBER: NUMBERS}
BLANK, APOSTROPHE, NEWLINE, RETURN = map(ord, " '\n\r")
ENDINGS = ("s", "t", "re", "ve", "m", "ll", "d")  # of contractions
LONG_S = ord("ſ")  # equals "s" in patterns that ignore the case
NO_POINT = -1  # stands between texts


class WordPattern:
    """A pattern that splits texts into words.

    Attributes:
        regex: The pattern in the syntax of Hugging Face's tokenizers.
        ignores_case: Whether contractions may have capital letters.
    """

    regex: str
    ignores_case = False

    @property
    def single(self) -> str:
        r"""One pattern that matches all words, with the classes in `NAMED`."""
        return self.regex

    def portable(self) -> str:
        """Returns `single` without names of classes and flags, which engines read differently.

        It has the code points themselves, so that any engine with Unicode finds the same words.
        """
        pattern = re.sub(r"\(\?i:(.*?)\)", lambda part: _of_any_case(part[1]), self.single)
        return re.sub(r"\[\^?(.*?)\]|\\p\{.\}|\\[sS]", _spelled_out, pattern)

    def word_starts(self, points) -> Tensor:
        """Returns which code points begin a word.

        Args:
            points: Ragged code points `[B, (N)]`, int32.

        Returns:
            Ragged booleans `[B, (N)]`.
        """
        column = tf.fill([points.nrows(), 1], NO_POINT)
        apart = tf.concat([points, tf.RaggedTensor.from_tensor(column)], axis=1)  # [B, (N + 1)]
        flat = apart.values
        starts = self.starts(flat, _classes(flat))
        return points.with_values(tf.boolean_mask(starts, flat != NO_POINT))

    def starts(self, flat, kind) -> Tensor:
        """Returns whether each code point begins a word, boolean `[N]`.

        Args:
            flat: Code points of all texts, int32 `[N]`; `NO_POINT` ends each text.
            kind: Their classes, int32 `[N]`.
        """
        raise NotImplementedError

    def _contractions(self, flat, kind_before, before):
        """Returns the number of letters of the contraction that begins at each code point, or 0."""
        free = tf.equal(flat, APOSTROPHE) & (kind_before != OTHER) & (before != BLANK)
        letters = [shifted(flat, -distance, NO_POINT) for distance in (1, 2)]
        length = tf.zeros_like(flat)
        for ending in ENDINGS:
            fits = free
            for letter, points in zip(ending, letters, strict=False):
                fits &= self._is_letter(points, letter)
            length = tf.where(fits, len(ending), length)
        return length

    def _is_letter(self, points, letter):
        equal = tf.equal(points, ord(letter))
        if self.ignores_case:
            equal |= tf.equal(points, ord(letter.upper()))
            if letter == "s":
                equal |= tf.equal(points, LONG_S)
        return equal


class GPT2Words(WordPattern):
    """The pattern that splits texts into words for GPT-2 and RoBERTa.

    Args:
        splits_digits: Whether each digit is a word of its own that divides the text into two, as
            in SmolLM, which splits texts at digits first.
    """

    regex = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

    def __init__(self, splits_digits=False):
        self.splits_digits = splits_digits

    @property
    def single(self) -> str:
        """One pattern that matches all words: see `WordPattern.single`."""
        if not self.splits_digits:
            return self.regex
        others = self.regex.replace(r"| ?\p{N}+", "").replace(r"\p{N}", r"\p{D}")
        return r"\p{D}|" + others.replace(r"(?!\S)", r"(?![^\s\p{D}])")

    def starts(self, flat, kind) -> Tensor:  # noqa: D102
        seen = kind
        if self.splits_digits:
            for first, last in NEW_DIGITS:
                kind = tf.where((first <= flat) & (flat <= last), NUMBER, kind)
            seen = tf.where(tf.equal(kind, NUMBER), EDGE, kind)
        before, kind_before = shifted(flat, 1, NO_POINT), shifted(seen, 1, EDGE)
        kind_after = shifted(seen, -1, EDGE)
        length = self._contractions(flat, kind_before, before)
        one, two = tf.equal(length, 1), tf.equal(length, 2)
        inside = shifted(one | two, 1, False) | shifted(two, 2, False)
        follows = shifted(one, 2, False) | shifted(two, 3, False)  # the end of a contraction
        # A blank before letters, numbers or others belongs to their word.
        begins = follows | ((kind != kind_before) & (before != BLANK))
        if self.splits_digits:
            begins |= tf.equal(kind, NUMBER)
        # The last of several white spaces before a word is a word by itself, or belongs to it.
        last_space = (kind_after != SPACE) & (kind_after != EDGE)
        space = (kind_before != SPACE) | last_space
        return tf.where(tf.equal(kind, SPACE), space, begins & ~inside)


class Llama3Words(WordPattern):
    """The pattern that splits texts into words for Llama 3 and Qwen2.

    A word of letters may begin with one other character, except a digit or a newline. Newlines
    belong to the punctuation before them; otherwise they end a word of white space. The number of
    digits in a word is limited.

    Args:
        digits: Maximum number of digits in a word.
    """

    ignores_case = True

    def __init__(self, digits):
        self.digits = digits
        count = {1: "", 3: "{1,3}"}[digits]
        self.regex = (
            rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{count}"
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        )

    def starts(self, flat, kind) -> Tensor:  # noqa: D102
        before, kind_before = shifted(flat, 1, NO_POINT), shifted(kind, 1, EDGE)
        other = (kind_before != OTHER) & (before != BLANK)
        # Letters belong to the character before them, unless that is a digit, a newline, or
        # punctuation that belongs to something before it.
        joins = tf.equal(kind, SPACE) & ~_is_newline(flat) | tf.equal(kind, OTHER) & other
        length = self._contractions(flat, kind_before, before)
        follows = shifted(tf.equal(length, 1), 2, False) | shifted(tf.equal(length, 2), 3, False)
        letter = (kind_before != LETTER) & ~shifted(joins, 1, False) | follows
        first = latest(tf.equal(kind, NUMBER) & (kind_before != NUMBER))
        number = tf.equal((tf.range(tf.size(flat)) - first) % self.digits, 0)
        starts = tf.where(tf.equal(kind, LETTER), letter, other)
        starts = tf.where(tf.equal(kind, NUMBER), number, starts)
        return tf.where(tf.equal(kind, SPACE), _space_starts(flat, kind, kind_before), starts)


def _space_starts(flat, kind, kind_before):
    """Returns which white spaces begin a word in `Llama3Words`, `[N]`."""
    newline, space = _is_newline(flat), tf.equal(kind, SPACE)
    newline_before = shifted(newline, 1, False)
    # Newlines that follow punctuation belong to it.
    run = tf.maximum(latest(newline & ~newline_before), 0)
    attached = newline & tf.equal(tf.gather(kind_before, run), OTHER)
    first = (kind_before != SPACE) | shifted(attached, 1, False)
    # The word of a run of white space ends with its last newline, and another one follows.
    is_last_line = newline_before & (_next(newline) > _next(~space))
    kind_after = shifted(kind, -1, EDGE)
    last = (kind_after != SPACE) & (kind_after != EDGE)
    return tf.where(newline, first & ~attached, first | is_last_line | last)


class TekkenWords(WordPattern):
    """The pattern that splits texts into words for Mistral Nemo, whose tokenizer is named Tekken.

    As `Llama3Words`, but a word of letters also ends before a capital letter that follows a
    lower-case one, marks are letters, and slashes belong to newlines after punctuation. There are
    no contractions. A digit is a word.
    """

    regex = (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )

    @property
    def single(self) -> str:
        r"""The pattern with `\p{U}` for letters and marks that are not lower-case, and so on."""
        cased = self.regex.replace(r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{U}")
        return cased.replace(r"\p{Ll}\p{Lm}\p{Lo}\p{M}", r"\p{l}")

    def starts(self, flat, kind) -> Tensor:  # noqa: D102
        space, number = tf.equal(kind, SPACE), tf.equal(kind, NUMBER)
        return word_starts(CodePoints(flat, space, number, _is_newline(flat)))


PATTERNS = {
    "gpt2": GPT2Words(),
    "gpt2_digits": GPT2Words(splits_digits=True),
    "llama3": Llama3Words(digits=3),
    "qwen2": Llama3Words(digits=1),
    "tekken": TekkenWords(),
}


WORDS = members(LETTERS) | members(COMBINING)
NAMED = {
    r"\s": SPACES,
    r"\p{L}": LETTERS,
    r"\p{N}": NUMBERS,
    r"\p{D}": (*NUMBERS, *NEW_DIGITS),
    r"\p{U}": ranges_of(WORDS - members(LOWERCASE_LETTERS)),
    r"\p{l}": ranges_of(WORDS - members(UPPERCASE_LETTERS)),
}


def get(name) -> WordPattern:
    """Returns the `WordPattern` with a name in `PATTERNS`.

    Raises:
        ValueError: If the name is unknown.
    """
    check_choice("pattern", name, PATTERNS)
    return PATTERNS[name]


def _of_any_case(words):
    """Returns a pattern of words, which `|` separates, with their capital letters."""

    def spelled(letter):
        return f"[{letter}{letter.upper()}{chr(LONG_S) * (letter == 's')}]"

    return re.sub("[a-z]", lambda letter: spelled(letter[0]), words)


def _spelled_out(part):
    """Returns a class of a pattern, a match of `re`, with code points instead of names."""
    if part[0] == r"\S":
        return f"[^{_literal(SPACES)}]"
    spelled = part[0] if part[0].startswith("[") else f"[{part[0]}]"
    for name, ranges in NAMED.items():
        spelled = spelled.replace(name, _literal(ranges))
    return spelled


def _literal(ranges):
    return "".join(chr(a) if a == b else f"{chr(a)}-{chr(b)}" for a, b in ranges)


def _is_newline(flat):
    return tf.equal(flat, NEWLINE) | tf.equal(flat, RETURN)


def _next(flags):
    """Returns the next place of a true flag at or after each place, or N, int32 `[N]`."""
    last = tf.size(flags) - 1
    return last - tf.reverse(latest(tf.reverse(flags, [0])), [0])


def _classes(flat):
    """The class of each code point."""
    return tf.where(tf.equal(flat, NO_POINT), EDGE, _table()(tf.maximum(flat, 0)))


@functools.cache
def _table():
    kinds = np.full(CODE_POINTS, OTHER, np.int32)
    for kind, ranges in CLASSES.items():
        for first, last in ranges:
            kinds[first : last + 1] = kind
    return CodePointTable(kinds)
