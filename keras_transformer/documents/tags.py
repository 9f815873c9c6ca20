"""Tags and texts of a page, read into blocks with marks."""

import dataclasses
from collections.abc import Callable
from typing import Any

from keras_transformer.documents.block import Mark, Parts, TextBlock, escape_html
from keras_transformer.documents.sentences import is_text

# Kinds of elements.
BLOCK = "block"  # begins and ends a block
INLINE = "inline"  # is inside a text, and its content is translated
OPAQUE = "opaque"  # is inside a text, and its content is copied
POINT = "point"  # is inside a text, and has no content
COPIED = "copied"  # is between blocks, and its content is copied


class TagReader:
    """Reader of the tags and texts of a page in order.

    Args:
        kind_of: Function from the name of an element and its tag to its kind.
        escape: See `TextBlock`.
    """

    def __init__(self, kind_of: Callable[[str, str], str], escape: Any = escape_html):
        self._kind_of, self._escape = kind_of, escape
        self._parts: Parts = []
        self._copying: tuple[str, int] | None = None  # name of the copied element, and its depth
        self._begin()

    def _begin(self):
        self._text: list[str] = []
        self._raw: dict[int, str] = {}
        self._all: list[str] = []  # the characters of the document
        self._marks: list[Mark] = []
        self._open: list[tuple[str, int]] = []  # names and numbers of elements that have no end yet
        self._kept: list | None = None  # name, depth, start and characters of an opaque element

    def text(self, raw: str) -> None:
        """Adds text in which each character stands for itself."""
        self._all.append(raw)
        if self._copying is None:
            self._text += raw
            if self._kept:
                self._kept[3].append(raw)

    def coded(self, characters: str, raw: str) -> None:
        """Adds text that the document writes as `raw`, such as `&` as `&amp;`."""
        self._all.append(raw)
        if self._copying is not None:
            return
        first = len(self._text)
        self._raw |= {first: raw} | {first + i: "" for i in range(1, len(characters))}
        self._text += characters
        if self._kept:
            self._kept[3].append(raw)

    def start(self, name: str, raw: str) -> None:
        """Adds the tag at the beginning of an element."""
        kind = self._kind_of(name, raw)
        if self._copying is not None:
            self._all.append(raw)
            self._deepen(name, 1)
        elif kind == COPIED:
            self.flush()
            self._all.append(raw)
            self._copying = name, 1
        elif kind == BLOCK:
            self._between(raw)
        else:
            self._all.append(raw)
            if self._kept:
                self._kept[3].append(raw)
                self._kept[1] += name == self._kept[0]
            elif kind == OPAQUE:
                self._kept = [name, 1, len(self._text), [raw]]
            elif kind == POINT:
                self._point(raw)
            else:
                self._point(raw)  # until its end is found
                self._open.append((name, len(self._marks) - 1))

    def end(self, name: str, raw: str) -> None:
        """Adds the tag at the end of an element."""
        kind = self._kind_of(name, "")
        if self._copying is not None:
            self._all.append(raw)
            self._deepen(name, -1)
        elif self._kept:
            self._all.append(raw)
            self._kept[3].append(raw)
            self._kept[1] -= name == self._kept[0]
            if not self._kept[1]:
                _, _, start, characters = self._kept
                self._kept = None
                self._text[start:] = "".join(self._text[start:]).strip()
                self._raw = {place: one for place, one in self._raw.items() if place < start}
                self._point("".join(characters), start)
        elif kind in (BLOCK, COPIED):
            self._between(raw)
        else:
            self._all.append(raw)
            self._close(name, raw)

    def other(self, raw: str, name: str | None = None) -> None:
        """Adds a comment or a declaration, or an element that is a tag only."""
        is_inside = self._copying is not None or self._kept
        if name is not None and not is_inside and self._kind_of(name, raw) in (BLOCK, COPIED):
            self._between(raw)
            return
        self._all.append(raw)
        if self._kept:
            self._kept[3].append(raw)
        elif self._copying is None:
            self._point(raw)

    def finish(self) -> Parts:
        """Returns the parts of the document; together they are all that was added."""
        self.flush()
        return self._parts

    def flush(self) -> None:
        """Ends the block."""
        text = "".join(self._text)
        if self._copying is None and self._kept is None and is_text(text, 0, len(text)):
            marks = [
                dataclasses.replace(mark, parent=self._enclosing(mark.parent))
                for mark in self._marks
            ]
            self._parts.append(TextBlock(text, marks, self._raw, self._escape))
        else:
            self._copy("".join(self._all))
        self._begin()

    def _between(self, raw):
        """Ends the block, and copies the tag after it."""
        self.flush()
        self._copy(raw)

    def _copy(self, raw):
        if raw and self._parts and isinstance(self._parts[-1], str):
            self._parts[-1] += raw
        elif raw:
            self._parts.append(raw)

    def _deepen(self, name, step):
        """Follows the depth of a copied element, and ends it with its last tag."""
        if self._copying is None:
            return
        copied, depth = self._copying
        depth += step * (name == copied)
        self._copying = copied, depth
        if not depth:
            self._copy("".join(self._all))
            self._copying = None
            self._begin()

    def _point(self, raw, start=None):
        """Adds a kept mark that ends here."""
        end, parent = len(self._text), self._open[-1][1] if self._open else -1
        self._marks.append(Mark(end if start is None else start, end, raw, "", parent, True))

    def _close(self, name, raw):
        """Gives the last element of this name its end; those opened in it have none."""
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place][0] == name:
                number = self._open[place][1]
                mark = self._marks[number]
                end = len(self._text)
                self._marks[number] = Mark(mark.start, end, mark.open, raw, mark.parent)
                del self._open[place:]
                return
        self._point(raw)

    def _enclosing(self, number):
        """Returns the number of the innermost mark with an end, from this one outwards."""
        while number >= 0 and self._marks[number].kept:
            number = self._marks[number].parent
        return number
