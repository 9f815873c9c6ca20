"""Plain text: every line is a block."""

import re

from keras_transformer.documents.block import Parts, TextBlock

LINE = re.compile(r"[^\r\n]+")


def read_plain(document: str) -> Parts:
    """Returns the lines of a text as blocks, and their ends as strings."""
    parts, end = [], 0
    for line in LINE.finditer(document):
        parts += [document[end : line.start()], TextBlock(line[0])]
        end = line.end()
    return [part for part in [*parts, document[end:]] if part]
