"""Text blocks of a document: paragraphs, cells or headings, with the marks inside them."""

import dataclasses
import html
import unicodedata
from collections.abc import Callable, Sequence

INVISIBLE = ("Cc", "Cf")  # Unicode categories of controls, byte order marks and direction marks


@dataclasses.dataclass(frozen=True)
class Mark:
    """Markup or a protected passage inside the text of a block.

    Args:
        start, end: Its range in the text, in characters.
        open: Markup before the range, as in the document; a kept mark's whole content.
        close: Markup after the range.
        parent: Index of the mark around it among the marks of its block. -1: there is none.
        kept: Whether `open` replaces the range, which is not translated, such as `<code>x</code>`,
            `{name}` or `<br>`.
    """

    start: int
    end: int
    open: str
    close: str = ""
    parent: int = -1
    kept: bool = False


@dataclasses.dataclass(frozen=True)
class TextBlock:
    """Text that is translated as a whole, between parts of a document that are copied.

    Args:
        text: The text without markup. Sentences end at its end.
        marks: Its `Mark`s, in the order of the document, kept passages last. Two marks are
            nested or disjoint.
        raw: The document's characters for some characters of the text, by their indices, such as
            `"&amp;"` for `"&"`.
        escape: Function from new text and the block to how the document writes the text.
    """

    text: str
    marks: Sequence[Mark] = ()
    raw: dict[int, str] = dataclasses.field(default_factory=dict)
    escape: Callable[[str, "TextBlock"], str] = lambda text, block: text

    def source(self, start: int, end: int) -> str:
        """Returns how the document writes a range of the text, without marks."""
        return "".join(self.raw.get(i, self.text[i]) for i in range(start, end))


Parts = list[str | TextBlock]  # of a document: strings are copied


def escape_html(text: str, block: TextBlock | None = None) -> str:
    """Returns a text with `&`, `<` and `>` as character references."""
    return html.escape(text, quote=False)


def is_margin(character: str) -> bool:
    """Returns whether a character is white space or invisible, and never part of a sentence."""
    return character.isspace() or unicodedata.category(character) in INVISIBLE


def core(text: str, start: int, end: int) -> tuple[int, int]:
    """Returns a range without the white space and invisible characters at both of its ends."""
    while start < end and is_margin(text[start]):
        start += 1
    while start < end and is_margin(text[end - 1]):
        end -= 1
    return start, end
