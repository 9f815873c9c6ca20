"""Glossaries and lists of banned phrases as files, and terms as words of a text."""

import os
import re
from collections.abc import Iterator, Sequence

from keras_transformer.text.lines import read_lines

# Scripts that are written without spaces: each character counts as a word.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]")

Glossary = dict[str, tuple[str, ...]]


def read_glossary(path: str | os.PathLike) -> Glossary:
    """Returns the glossary in a file: target terms for each source term.

    Args:
        path: A UTF-8 file of lines with a source term, a tab and a target term. Several lines with
            the same source term list several spellings, one of which is enough. Empty lines are
            skipped.

    Raises:
        ValueError: If a line is not of this form, or the file is not UTF-8 or has no terms.
    """
    glossary: Glossary = {}
    for number, line in _lines(path):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 2 or not all(fields):
            raise ValueError(
                f"{path}, line {number}: a line of a glossary is a source term, a tab and a target "
                f"term. Received: {line!r}."
            )
        source, target = fields
        known = glossary.get(source, ())
        glossary[source] = known if target in known else (*known, target)
    return _some(glossary, path, "terms")


def read_phrases(path: str | os.PathLike) -> tuple[str, ...]:
    """Returns the phrases in a UTF-8 file, one per line; empty lines are skipped.

    Raises:
        ValueError: If the file is not UTF-8 or has no phrases.
    """
    return _some(tuple(line.strip() for _, line in _lines(path)), path, "phrases")


def words_of(text: str) -> tuple[str, ...]:
    """Returns the words and punctuation marks of a text."""
    return tuple(WORD.findall(text))


def spellings(term: str) -> tuple[str, ...]:
    """Returns a term as it is written, and as it begins a sentence."""
    capital = term[:1].upper() + term[1:]
    return (term,) if capital == term else (term, capital)


def contains(text: str, term: str) -> bool:
    """Returns whether a text contains a term as whole words, also with a capital first letter."""
    words = words_of(text)
    for spelling in spellings(term):
        wanted = words_of(spelling)
        starts = range(len(words) - len(wanted) + 1)
        if wanted and any(words[i : i + len(wanted)] == wanted for i in starts):
            return True
    return False


class Finder:
    """Finds the source terms of a glossary in texts.

    Args:
        terms: The source terms.
    """

    def __init__(self, terms: Sequence[str]):
        self._terms = {words_of(one): term for term in terms for one in spellings(term)}
        self._longest = max(map(len, self._terms), default=0)

    def __call__(self, text: str) -> list[str]:
        """Returns the terms in a text, each once; of overlapping ones, the longest from the left.

        A term is found as it is written in the glossary, or with a capital first letter.
        """
        words, found, place = words_of(text), [], 0
        while place < len(words):
            for length in range(min(self._longest, len(words) - place), 0, -1):
                term = self._terms.get(words[place : place + length])
                if term is not None:
                    found.append(term)
                    place += length - 1
                    break
            place += 1
        return list(dict.fromkeys(found))


def _lines(path) -> Iterator[tuple[int, str]]:
    """Yields the lines of a file that are not empty, with their numbers from 1."""
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            yield number, line


def _some(values, path, what):
    if not values:
        raise ValueError(f"{path} has no {what}.")
    return values
