"""Weights of the characters of a source for each word of its translation."""

import collections
import difflib
from collections.abc import Sequence

import numpy as np

from keras_transformer.documents.words import split
from keras_transformer.tasks.attention import SPECIAL
from keras_transformer.tasks.results import SPACE, Alignment

TEMPERATURE = 2  # exponent of attention weights: the largest ones count
MANY = 300  # words; frequent ones of longer texts are not compared, which takes quadratic time


def by_attention(source: str, text: str, words, alignment: Alignment, literals) -> np.ndarray:
    """Returns the attention of words to the characters of a source, `[T, S]`; rows add up to 1."""
    sides = []
    marks = {"</s>", *alignment.marks}
    for pieces, string in ((alignment.source, source), (alignment.target, text)):
        numbers = [n for n, piece in enumerate(pieces) if piece not in marks]
        sides.append((numbers, piece_spans([pieces[n] for n in numbers], string)))
    (columns, of_source), (rows, of_text) = sides
    if not columns or not rows:
        return by_place(source, text, words, literals)
    weights = alignment.weights[np.ix_(rows, columns)].astype("float64") ** TEMPERATURE
    inside = _overlap(words, of_text)  # [T words, T tokens]
    spread = _overlap(of_source, [(n, n + 1) for n in range(len(source))])
    spread /= np.maximum(spread.sum(axis=1, keepdims=True), 1e-9)
    shares = inside @ weights @ spread
    blank = np.array([text[a:b].isspace() for a, b in words])
    shares[blank] = 0
    sums = shares.sum(axis=1, keepdims=True)
    return np.where(sums > 0, shares / np.maximum(sums, 1e-30), 0)


def piece_spans(pieces: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Returns the range of each token in a text, in characters.

    If the tokens do not spell the text, as unknown characters and normalised ones do not, their
    places are those of the same characters around them.
    """
    strings = [piece.replace(SPACE, " ") for piece in pieces]
    strings = [" " if SPECIAL.fullmatch(one) else one for one in strings]
    spelled = "".join(strings)
    shift = len(spelled) - len(spelled.lstrip(" ")) - (len(text) - len(text.lstrip(" ")))
    ends = np.cumsum([0, *map(len, strings)])
    if spelled.strip() == text.strip():
        places = np.arange(len(spelled) + 1) - shift
    else:
        matcher = difflib.SequenceMatcher(None, spelled, text, autojunk=len(text) > 10 * MANY)
        known = [(0, 0)]
        for a, b, size in matcher.get_matching_blocks():
            known += [(a, b), (a + size, b + size)]
        known = sorted({a: b for a, b in [*known, (len(spelled), len(text))]}.items())
        ours, theirs = np.array(known).T
        places = np.interp(np.arange(len(spelled) + 1), ours, theirs).round()
    places = np.clip(places.astype(int), 0, len(text))
    spans = [(int(places[a]), int(places[b])) for a, b in zip(ends[:-1], ends[1:], strict=True)]
    return [
        (begin + (begin < end and text[begin].isspace() and end - begin > 1), end)
        for begin, end in spans
    ]


def by_place(source: str, text: str, words, literals) -> np.ndarray:
    """Returns the weights of words that lie in the order of the source, `[T, S]`."""
    ours = [text[a:b] for a, b in words]
    theirs = split(source, literals)
    other = [source[a:b] for a, b in theirs]
    matcher = difflib.SequenceMatcher(
        lambda word: word.isspace() or len(word) < 2, other, ours, autojunk=len(ours) > MANY
    )
    known = [(0, 0)]
    for a, b, size in matcher.get_matching_blocks():
        for i in range(size):
            if not ours[b + i].isspace():
                known += [(words[b + i][0], theirs[a + i][0]), (words[b + i][1], theirs[a + i][1])]
    known = sorted({a: b for a, b in [(len(text), len(source)), *known]}.items())
    in_text, in_source = np.array(known).T
    at = np.interp([edge for span in words for edge in span], in_text, in_source)
    spans = [tuple(row) for row in at.reshape(-1, 2)]
    for row, column in _equal(ours, other):
        spans[row] = theirs[column]
    weights = np.zeros((len(words), len(source)))
    for row, (a, b) in enumerate(spans):
        if source and not ours[row].isspace():
            a, b = min(int(a), len(source) - 1), int(np.ceil(b))
            weights[row, a : max(a + 1, b)] = 1 / max(1, min(b, len(source)) - a)
    return weights


def _equal(ours, theirs):
    """Yields the places of words that two lists have equally often, the first with the first."""
    ways = [collections.defaultdict(list), collections.defaultdict(list)]
    for way, words in zip(ways, (ours, theirs), strict=True):
        for place, word in enumerate(words):
            way[word].append(place)
    for word, places in ways[0].items():
        if len(places) == len(ways[1][word]):
            yield from zip(places, ways[1][word], strict=True)


def _overlap(wide, narrow):
    """Returns which of some ranges overlap which of others, `[wide, narrow]` of 0.0 and 1.0."""
    wide, narrow = (np.array(one).reshape(-1, 2) for one in (wide, narrow))
    starts = np.maximum(wide[:, None, 0], narrow[None, :, 0])
    return (starts < np.minimum(wide[:, None, 1], narrow[None, :, 1])).astype("float64")
