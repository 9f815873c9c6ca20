"""Words, signs and white space of a text, with the passages that are kept as a whole."""

import re

# Characters of scripts that are written without spaces are words by themselves.
SINGLE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
)
WORD = re.compile(rf"[^\W{SINGLE}]+(?:['\u2019-][^\W{SINGLE}]+)*[\u0300-\u036f]*|\s+|.", re.DOTALL)


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


def literals_of(block, start: int, end: int) -> dict[str, bool]:
    """Returns the texts of the kept marks in a range, and whether they may be inside of words.

    Those with signs may, such as `%s`, and those beside a letter, such as the code of `List`s.
    """
    result: dict[str, bool] = {}
    for mark in block.marks:
        if mark.kept and start <= mark.start < mark.end <= end:
            literal = block.text[mark.start : mark.end]
            joins = is_joined(block.text, mark.start) or is_joined(block.text, mark.end)
            joins = joins or not literal.replace("_", "a").isalnum()
            result[literal] = result.get(literal, False) or joins
    return result


def split(text: str, literals: dict[str, bool]) -> list[tuple[int, int]]:
    """Returns the ranges of the words, signs and white space of a text, which cover it.

    Args:
        text: The text.
        literals: Passages that are words as a whole, and whether also inside of words.
    """
    whole: list[tuple[int, int]] = []
    for literal in sorted((one for one in literals if one in text), key=len, reverse=True):
        place = text.find(literal)
        while place >= 0:
            end = place + len(literal)
            is_inside = not literals[literal] and (is_joined(text, place) or is_joined(text, end))
            if not is_inside and not any(a < end and place < b for a, b in whole):
                whole.append((place, end))
            place = text.find(literal, end)
    words, at = [], 0
    for start, end in [*sorted(whole), (len(text), len(text))]:
        words += [match.span() for match in WORD.finditer(text, at, start)]
        words += [(start, end)] if start < end else []
        at = end
    return words


def is_joined(text, place):
    """Returns whether a place is inside of a word of ASCII letters, digits and underscores."""
    both = text[max(place - 1, 0) : place + 1]
    return 0 < place < len(text) and both.isascii() and both.replace("_", "a").isalnum()
