"""Words of a block's translation, and how much each translates each character of the source."""

import collections
import dataclasses
import difflib
import re
from collections.abc import Iterable, Sequence

import numpy as np

from keras_transformer.tasks.attention import SPECIAL
from keras_transformer.tasks.results import SPACE, Alignment

# Characters of scripts that are written without spaces are words by themselves.
SINGLE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
)
WORD = rf"[^\W{SINGLE}]+(?:['\u2019-][^\W{SINGLE}]+)*[\u0300-\u036f]*|\s+|."
TEMPERATURE = 2  # exponent of attention weights: the largest ones count


@dataclasses.dataclass(frozen=True)
class Unit:
    """A word, a sign or white space of the output.

    Args:
        text: As the document writes it.
        word: As the model wrote it, or `None` for what is copied from the source.
        start, end: Range of the block's text that it translates or copies, in characters.
        weights: How much of it comes from each character of the range, `[end - start]`; the sum is
            1, or 0 for white space.
        copied: Whether it is a part of the source, in its place.
    """

    text: str
    word: str | None
    start: int
    end: int
    totals: np.ndarray  # [end - start + 1], sums of the weights before each character

    def share(self, start: int, end: int) -> float:
        """Returns how much of it comes from a range of the block's text, from 0 to 1."""
        first, last = (min(max(one, self.start), self.end) - self.start for one in (start, end))
        return float(self.totals[last] - self.totals[first])


def copied_units(block, start: int, end: int) -> list[Unit]:
    """Returns a range of a block's text, a unit for each character."""
    whole = np.array([0.0, 1.0])
    return [Unit(block.source(i, i + 1), None, i, i + 1, whole) for i in range(start, end)]


def translated_units(block, start, end, text, alignment, literals: Iterable[str]) -> list[Unit]:
    """Returns the words of a translation.

    Args:
        block: The `TextBlock`.
        start, end: Range of its text that was translated.
        text: The translation.
        alignment: Its `Alignment`, or `None`: words that are equal on both sides are translations
            of each other, and the others lie between them in the same order.
        literals: Passages that are words although they contain other characters.
    """
    source, places = one_spaced(block.text, start, end)
    words = split(text, literals)
    spaces = white_space(block, source, places, text, words)
    if not block.marks:
        weights = np.zeros((len(words), len(source)))
    elif alignment is None:
        weights = by_place(source, text, words, literals)
    else:
        weights = by_attention(source, text, words, alignment, literals)
    spread = np.zeros((len(words), end - start))  # [T, characters]
    spread[:, np.array(places, int) - start] = weights
    totals = np.concatenate([np.zeros((len(words), 1)), np.cumsum(spread, axis=1)], axis=1)
    return [
        Unit(spaces.get(n) or block.escape(text[a:b], block.text), text[a:b], start, end, row)
        for n, ((a, b), row) in enumerate(zip(words, totals, strict=True))
    ]


def white_space(block, source, places, text, words) -> dict[int, str]:
    """Returns the line ends and other white space in a sentence that is more than a single space.

    The keys are the numbers of the words that it replaces.

    Each is at the white space of the translation that divides it most nearly as the source is
    divided. If there is too little white space, the last ones are left out.

    Args:
        block: The `TextBlock`.
        source, places: See `one_spaced`.
        text: The translation.
        words: The ranges of its words; see `split`.
    """
    free = [n for n, (a, b) in enumerate(words) if text[a:b].isspace()]
    at, result = 0, {}
    for here, character in enumerate(source):
        if character != " " or not free[at:]:
            continue
        first = places[here]
        last = places[here + 1] if here + 1 < len(places) else first + 1
        written = block.source(first, last)
        if written == " ":
            continue
        wanted = here / len(source) * len(text)
        chosen = min(range(at, len(free)), key=lambda n: abs(words[free[n]][0] - wanted))
        result[free[chosen]] = written
        at = chosen + 1
    return result


def one_spaced(text: str, start: int, end: int) -> tuple[str, list[int]]:
    """Returns a range of a text with single spaces as white space, and where each character was."""
    characters, places = [], []
    for place in range(start, end):
        if not text[place].isspace():
            characters.append(text[place])
        elif characters and characters[-1] == " ":
            continue
        else:
            characters.append(" ")
        places.append(place)
    return "".join(characters), places


def split(text: str, literals: Iterable[str]) -> list[tuple[int, int]]:
    """Returns the ranges of the words, signs and white space of a text, which cover it."""
    longest_first = sorted({one for one in literals if one}, key=len, reverse=True)
    pattern = "|".join([*map(re.escape, longest_first), WORD])
    return [match.span() for match in re.finditer(pattern, text, re.DOTALL)]


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
        matcher = difflib.SequenceMatcher(None, spelled, text, autojunk=False)
        known = [(0, 0)]
        for a, b, size in matcher.get_matching_blocks():
            known += [(a, b), (a + size, b + size)]
        known = sorted({a: b for a, b in [*known, (len(spelled), len(text))]}.items())
        places = np.interp(np.arange(len(spelled) + 1), *zip(*known, strict=True)).round()
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
        lambda word: word.isspace() or len(word) < 2, other, ours, autojunk=False
    )
    known = [(0, 0)]
    for a, b, size in matcher.get_matching_blocks():
        for i in range(size):
            if not ours[b + i].isspace():
                known += [(words[b + i][0], theirs[a + i][0]), (words[b + i][1], theirs[a + i][1])]
    known = sorted({a: b for a, b in [(len(text), len(source)), *known]}.items())
    at = np.interp([edge for span in words for edge in span], *zip(*known, strict=True))
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
