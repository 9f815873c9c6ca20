"""Plain text: every line is a block, or every paragraph of wrapped lines."""

import re

from keras_transformer.documents.block import Parts, TextBlock

LINE = re.compile(r"[^\r\n]+")
# Lines without an empty one between them. A bullet or a number begins an item of a list, which is a
# paragraph; a line of signs only, such as one that underlines a title, is one as well.
NO_TEXT = r"[^\S\r\n]*(?:[^\w\s]+[^\S\r\n]*)*(?:\r?\n|\r|$)"
ITEM = r"[^\S\r\n]*(?:[-*+\u2022]|\d{1,3}[.)])[^\S\r\n]"
PARAGRAPH = re.compile(
    rf"(?:(?<=[\r\n])|^)(?!{NO_TEXT})[^\r\n]+(?:(?:\r?\n|\r)(?!{NO_TEXT}|{ITEM})[^\r\n]+)*"
)


def read_plain(document: str) -> Parts:
    """Returns the lines of a text as blocks, and their ends as strings."""
    return _blocks(document, LINE)


def read_wrapped(document: str) -> Parts:
    """Returns the paragraphs of a text as blocks, and what is between them as strings."""
    return _blocks(document, PARAGRAPH, re.compile(ITEM))


def _blocks(document, pattern, bullet=None):
    parts, end = [], 0
    for match in pattern.finditer(document):
        item = bullet.match(match[0]) if bullet else None
        start = match.start() + (item.end() if item else 0)
        parts += [document[end:start], TextBlock(document[start : match.end()])]
        end = match.end()
    return [part for part in [*parts, document[end:]] if part]
