"""Marks of a source, placed in its translation.

The content of a mark is the run of words that come from its range most. Marks stay nested as they
are in the source, and each occurs once. The method is that of the translators in browsers, inline
tags by alignment, except that no mark is repeated or lost.
"""

import bisect
import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence

from keras_transformer.documents.block import Mark, TextBlock
from keras_transformer.documents.units import Unit

OWN = 2.0  # gain of a passage that belongs to a mark: more than that of any word
SPACE_COST = 0.001  # of white space: no mark begins or ends with the model's white space


@dataclasses.dataclass
class Placed:
    """A mark in a translation.

    Args:
        begin, end: Its range, in units.
        number: Its number among the marks of the block; -1 for the whole translation.
        open, close: What is written before and after.
        kept: Whether the units in the range are left out.
        inside: The marks in it.
    """

    begin: int
    end: int
    number: int = -1
    open: str = ""
    close: str = ""
    kept: bool = False
    inside: list["Placed"] = dataclasses.field(default_factory=list)


def write_block(block: TextBlock, units: Sequence[Unit]) -> str:
    """Returns the translation of a block with its marks.

    Args:
        block: The block.
        units: The `Unit`s of its translation.
    """
    if not block.marks:
        return "".join(unit.text for unit in units)
    placing = Placing(block, units)
    whole = placing.placed()
    return "".join(_written(whole, units, placing.surplus()))


class Placing:
    """Search for the places of the marks of a block; see `write_block`."""

    def __init__(self, block: TextBlock, units: Sequence[Unit]):
        self._block, self._units, self._marks = block, units, block.marks
        self._inside: dict[int, list[int]] = {}
        for number, mark in enumerate(self._marks):
            self._inside.setdefault(mark.parent, []).append(number)
        self._starts = [unit.start for unit in units]
        self._ends = [unit.end for unit in units]
        self._unit_of = passages(block, units)
        self._passage_in = {unit: number for number, unit in self._unit_of.items()}
        self._used: set[int] = set()

    def placed(self) -> Placed:
        """Returns the whole translation with all marks in it."""
        whole = Placed(0, len(self._units))
        todo = [whole]
        while todo:
            around = todo.pop()
            numbers = self._inside.get(around.number, [])
            if numbers:
                self._place(numbers, around)
            todo += [placed for placed in around.inside if not placed.kept]
        return whole

    def surplus(self) -> set[int]:
        """Returns the units that repeat a passage more often than the source, and spaces before."""
        literal = Counter(
            self._block.text[mark.start : mark.end]
            for mark in self._marks
            if is_literal(mark, self._block)
        )
        free = {one: self._block.text.count(one) - count for one, count in literal.items()}
        result = set()
        for number, unit in enumerate(self._units):
            if unit.word in free and number not in self._used:
                free[unit.word] -= 1
                if free[unit.word] < 0:
                    result.add(number)
                    if number and self._units[number - 1].text == " ":
                        result.add(number - 1)
        return result

    def _place(self, numbers, around):
        """Places marks in the mark around them."""
        taken = [0] * (around.end - around.begin)  # number of the mark at each unit, from 1
        spans = [number for number in numbers if not self._marks[number].kept]
        runs = {number: self._run(number, around, taken) for number in spans}
        for number in sorted(spans, key=lambda one: -runs[one][0]):
            _, begin, end = runs[number]
            if any(taken[begin - around.begin : end - around.begin]):
                _, begin, end = self._run(number, around, taken)
            if begin == end:
                begin = end = self._gap(number, around, taken)
            self._put(number, begin, end, around, taken)
        for number in numbers:
            if self._marks[number].kept:
                self._place_kept(number, around, taken)
        around.inside.sort(key=lambda one: (one.begin, one.end, self._order(one.number)))

    def _place_kept(self, number, around, taken):
        mark, unit = self._marks[number], self._unit_of.get(number)
        begin = end = 0
        if unit is not None and around.begin <= unit < around.end:
            if not taken[unit - around.begin]:
                begin, end = unit, unit + 1
        elif mark.start < mark.end:
            gain, begin, end = self._run(number, around, taken)
            if gain <= 0:
                begin = end = 0
        if begin == end:
            begin = end = self._gap(number, around, taken)
            self._put(number, begin, end, around, taken, self._spaced(mark, begin))
        else:
            self._put(number, begin, end, around, taken, mark.open)

    def _put(self, number, begin, end, around, taken, written=None):
        mark = self._marks[number]
        taken[begin - around.begin : end - around.begin] = [number + 1] * (end - begin)
        if mark.kept:
            self._used.update(range(begin, end))
        open = mark.open if written is None else written
        around.inside.append(Placed(begin, end, number, open, mark.close, mark.kept))

    def _order(self, number):
        return self._marks[number].start, number

    def _spaced(self, mark, place):
        """Returns a passage that is written between two words, with spaces where it needs them."""
        if mark.start == mark.end:
            return mark.open
        text = self._block.text
        before = "".join(unit.text[-1:] for unit in self._units[max(place - 1, 0) : place])
        after = "".join(unit.text[:1] for unit in self._units[place : place + 1])
        spaces = (
            text[mark.start - 1 : mark.start].isspace(),
            text[mark.end : mark.end + 1].isspace(),
        )
        left = before.isalnum() or spaces[0] and before and not before.isspace()
        right = after.isalnum() or spaces[1] and after and not after.isspace()
        return " " * bool(left) + mark.open + " " * bool(right)

    def _run(self, number, around, taken):
        """Returns the gain, begin and end of the run of free units that come from a mark most."""
        mark = self._marks[number]
        first = max(bisect.bisect_right(self._ends, mark.start), around.begin)
        last = min(bisect.bisect_left(self._starts, mark.end), around.end)
        is_blank = not self._block.text[mark.start : mark.end].strip()
        best, gain, begin = (float("-inf"), around.begin, around.begin), 0.0, first
        for place in range(first, last):
            one, unit = self._gain(place, number, is_blank), self._units[place]
            if taken[place - around.begin] or one is None:
                gain, begin = 0.0, place + 1
                continue
            is_space = unit.text.isspace()
            if gain <= 0:
                gain, begin = 0.0, place + (is_space and unit.start != mark.start)
            gain += one * (begin <= place)
            if gain > best[0] and one > -OWN and (not is_space or unit.end == mark.end):
                best = gain, begin, place + 1
        return best if best[1] < best[2] else (best[0], around.begin, around.begin)

    def _gain(self, place, number, is_blank):
        """Returns the gain of a unit for a mark, positive if most of it comes from the mark.

        `None`: it can never be in it.
        """
        unit, mark = self._units[place], self._marks[number]
        if place in self._passage_in:
            passage = self._passage_in[place]
            if mark.kept:
                return None
            return OWN if self._is_inside(passage, number) else -OWN
        share = unit.share(mark.start, mark.end)
        if unit.text.isspace():
            inside = unit.word is None and share > 0
            return SPACE_COST if inside else -SPACE_COST
        return None if is_blank else share - 0.5

    def _is_inside(self, number, around):
        while number >= 0 and number != around:
            number = self._marks[number].parent
        return number == around

    def _gap(self, number, around, taken):
        """Returns the place between two units that divides the words as the source is divided."""
        at = self._marks[number].start
        first = max(bisect.bisect_left(self._ends, at), around.begin)
        last = max(min(bisect.bisect_right(self._starts, at), around.end), first)
        first = min(first, around.end)
        last = min(last, around.end)
        units = self._units[first:last]
        score = sum(unit.share(at, unit.end) for unit in units)
        text = self._block.text[:at]
        blanks = len(text) - len(text.rstrip())  # white space before the mark, of which as much
        best, equal = float("-inf"), []  # is before it in the translation
        for place in range(first, last + 1):
            if place > first:
                unit = units[place - first - 1]
                score += unit.share(unit.start, at) - unit.share(at, unit.end)
            here = place - around.begin
            if 0 < here < len(taken) and taken[here] and taken[here - 1] == taken[here]:
                continue
            if score > best + 1e-9:
                best, equal = score, []
            if score > best - 1e-9:
                equal.append(place)
        if equal:
            return equal[min(blanks, len(equal) - 1)]
        place = first  # inside of one mark as a whole: before it
        while place > around.begin and taken[place - around.begin - 1]:
            place -= 1
        return place


def is_literal(mark: Mark, block: TextBlock) -> bool:
    """Returns whether a mark is a plain passage of the text of its block, such as `{name}`."""
    return mark.kept and mark.start < mark.end and mark.open == block.source(mark.start, mark.end)


def passages(block: TextBlock, units: Sequence[Unit]) -> dict[int, int]:
    """Returns a unit for each kept mark that the translation has as well, by their numbers."""
    marks: dict[str, list[int]] = {}
    for number, mark in enumerate(block.marks):
        if mark.kept and mark.start < mark.end:
            marks.setdefault(block.text[mark.start : mark.end], []).append(number)
    places: dict[str, list[int]] = {}
    for place, unit in enumerate(units):
        if unit.word in marks:
            places.setdefault(unit.word, []).append(place)
    result: dict[int, int] = {}
    for word, free in places.items():
        for number in marks[word]:
            mark = block.marks[number]
            near = [p for p in free if units[p].start <= mark.start < units[p].end]
            if near:
                best = max(near, key=lambda place: units[place].share(mark.start, mark.end))
                free.remove(best)
                result[number] = best
    return result


def _written(whole, units, left_out) -> Iterator[str]:
    """Yields the strings of the marks and of the units in them, in order."""
    stack = [(whole, iter(whole.inside), whole.begin)]
    while stack:
        placed, inside, place = stack.pop()
        inner = next(inside, None)
        end = placed.end if inner is None else inner.begin
        if not placed.kept:
            for number in range(place, end):
                if number not in left_out:
                    yield units[number].text
        if inner is None:
            yield placed.close
            continue
        yield inner.open
        stack += [(placed, inside, inner.end), (inner, iter(inner.inside), inner.begin)]
