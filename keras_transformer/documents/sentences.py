"""Sentences of a text, and parts of sentences that are too long for a model."""

import dataclasses
import re

from keras_transformer.installation import install_hint

Span = tuple[int, int]  # a range of characters

# Where a long sentence is divided, the better places first: after punctuation, then white space.
PLACES = (
    re.compile(r"[,;:\u2013\u2014\u060c\u061b]+(?=\s)|[\u3001\uff0c\uff1b\uff1a]"),
    re.compile(r"\s+"),
)
JOINED = re.compile(r"[\u0300-\u036f\u200c\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")


@dataclasses.dataclass(frozen=True)
class SentenceSplitter:
    """Rules that divide a text into sentences: those of the package `sentencex`.

    Args:
        language: Code of the language whose abbreviations are known, such as `"de"` or
            `"deu_Latn"`. `None`, or a code that the package does not know: English.

    Raises:
        ValueError: If the package is not installed; when it is called.

    Example:
        >>> from keras_transformer.pipelines import SentenceSplitter
        >>> SentenceSplitter("en")("Dr. Smith left.  He slept.")
        [(0, 17), (17, 26)]
    """

    language: str | None = None

    def __call__(self, text: str) -> list[Span]:
        """Returns the ranges of the sentences, which follow each other and cover the text.

        White space after a sentence belongs to its range.
        """
        spans, begin = [], 0
        for sentence in _segmenter()(short_code(self.language), text):
            end = begin + len(sentence)
            if text[begin:end] != sentence:
                break  # what the package has changed is one sentence: no character is lost
            spans.append((begin, end))
            begin = end
        return [*spans, (begin, len(text))] if begin < len(text) else spans


def short_code(language: str | None) -> str:
    """Returns the code of two letters of a language, if there is one; `"en"` for `None`."""
    from babel.core import get_global

    code = re.split("[-_]", language or "en")[0].lower()
    return get_global("language_aliases").get(code, code)


def halves(text: str, start: int, end: int) -> list[Span]:
    """Returns the two parts of a range that is too long, or the range itself if it is too short.

    A range is divided after punctuation or at white space in its middle half; if there is none,
    between two characters.
    """
    quarter = (end - start) // 4
    if not quarter:
        return [(start, end)]
    middle = (start + end) // 2
    for place in PLACES:
        ends = [match.end() for match in place.finditer(text, start + quarter, end - quarter)]
        if ends:
            cut = min(ends, key=lambda one: abs(one - middle))
            return [(start, cut), (cut, end)]
    while middle > start + 1 and JOINED.match(text[middle]):
        middle -= 1
    return [(start, middle), (middle, end)]


def divided(text: str, spans: list[Span], longest: int) -> list[Span]:
    """Returns ranges of at most `longest` characters, made of longer ones by `halves`."""
    todo, done = spans[::-1], []
    while todo:
        start, end = todo.pop()
        parts = halves(text, start, end) if end - start > longest else [(start, end)]
        if len(parts) == 1:
            done += parts
        else:
            todo += parts[::-1]
    return done


def is_text(text: str, start: int, end: int) -> bool:
    """Returns whether a range has a letter, so that there is something to translate."""
    return any(character.isalpha() for character in text[start:end])


def _segmenter():
    try:
        import sentencex
    except ModuleNotFoundError as error:
        needed = f"sentences need the package sentencex: {install_hint('documents')}"
        raise ValueError(needed) from error
    return sentencex.segment  # ty: ignore[missing-attribute]
