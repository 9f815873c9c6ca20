"""Words of a block's translation, and how much each translates each character of the source."""

import dataclasses

import numpy as np

from keras_transformer.documents.weights import by_attention, by_place
from keras_transformer.documents.words import one_spaced, split


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


def translated_units(block, start, end, text, alignment, literals, is_divided) -> list[Unit]:
    """Returns the words of a translation.

    Args:
        block: The `TextBlock`.
        start, end: Range of its text that was translated.
        text: The translation.
        alignment: Its `Alignment`, or `None`: words that are equal on both sides are translations
            of each other, and the others lie between them in the same order.
        literals: See `literals_of`.
        is_divided: Whether a mark begins or ends inside the range.
    """
    source, places = one_spaced(block.text, start, end)
    words = split(text, literals)
    spaces = white_space(block, source, places, text, words)
    totals = _totals(source, places, start, end, text, words, alignment, literals, is_divided)
    units = []
    for number, ((a, b), row) in enumerate(zip(words, totals, strict=True)):
        if number in spaces:
            units += [Unit(one, " ", start, end, row) for one in spaces[number]]
        else:
            units.append(Unit(block.escape(text[a:b], block), text[a:b], start, end, row))
    return units


def _totals(source, places, start, end, text, words, alignment, literals, is_divided):
    """Returns the `totals` of each word."""
    if not is_divided:  # every mark is around all of it: any weights do
        even, none = np.linspace(0, 1, end - start + 1), np.zeros(end - start + 1)
        return [none if text[a:b].isspace() else even for a, b in words]
    if alignment is None:
        weights = by_place(source, text, words, literals)
    else:
        weights = by_attention(source, text, words, alignment, literals)
    spread = np.zeros((len(words), end - start + 1))  # [T, characters + 1]
    spread[:, np.array(places, int) - start + 1] = weights
    return np.cumsum(spread, axis=1)


def white_space(block, source, places, text, words) -> dict[int, list[str]]:
    """Returns the line ends and other white space in a sentence that is more than a single space.

    The keys are the numbers of the words that it replaces, the values its characters.

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
        written = [block.source(place, place + 1) for place in range(first, last)]
        if written == [" "]:
            continue
        wanted = here / len(source) * len(text)
        chosen = min(range(at, len(free)), key=lambda n: abs(words[free[n]][0] - wanted))
        result[free[chosen]] = written
        at = chosen + 1
    return result
