"""Passages that no translation changes: addresses, placeholders of programs, numbers."""

import bisect
import dataclasses
import re
from collections.abc import Sequence

import numpy as np

from keras_transformer.documents.block import Mark, TextBlock

# Patterns by name. The order decides where two begin at one place.
PATTERNS = {
    "url": r"(?:https?|ftp|file)://[^\s<>\"'`\u3000-\u303f\uff00-\uffef]*[\w/#=&$+-]|"
    r"(?<![\w.@])www\.[\w-]+(?:\.[\w-]+)+(?:/[^\s<>\"'`]*[\w/#=&$+-])?",
    "email": r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "placeholder": r"\{\{[^{}\n]{0,80}\}\}|\$?\{[\w.:!, -]{0,80}\}|"
    r"%(?:\([\w. -]{1,80}\))?(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:hh?|ll?|[Lqjzt])?[diouxXeEfFgGcs@]"
    r"(?![\w])|%\{[\w.]{1,80}\}|%[A-Z_]{2,80}%|(?<![\w$])\$[A-Za-z_]\w*",
}
NUMBERS = r"(?<![\w.,])[+-]?\d+(?:[.,:/]\d+)*(?![\w])"


def keep_pattern(more: Sequence[str] = ()) -> re.Pattern:
    """Returns the pattern of all passages that are kept.

    Args:
        more: Further regular expressions, or `"numbers"`.

    Raises:
        ValueError: If one is not a regular expression.
    """
    patterns = []
    for one in more:
        patterns.append(NUMBERS if one == "numbers" else one)
        try:
            re.compile(patterns[-1])
        except re.error as error:
            raise ValueError(
                f"`keep` must contain regular expressions or 'numbers'. Received: {one!r}: {error}."
            ) from None
    return re.compile("|".join(f"(?:{one})" for one in [*patterns, *PATTERNS.values()]))


def with_passages(block: TextBlock, pattern: re.Pattern) -> TextBlock:
    """Returns a block with further kept marks: passages of its text that match.

    A passage that overlaps another kept mark, or the beginning or end of markup, is left out.
    """
    text, marks = block.text, block.marks
    around = np.full(len(text), -1)  # the innermost mark around each character
    for number, mark in enumerate(marks):
        around[mark.start : mark.end] = len(marks) + number if mark.kept else number
    edges = sorted({edge for mark in marks for edge in (mark.start, mark.end)})
    result = list(marks)
    for match in pattern.finditer(text):
        start, end = match.span()
        edge = bisect.bisect_right(edges, start)
        if start == end or edge < len(edges) and edges[edge] < end:
            continue
        parent = int(around[start])
        if parent < len(marks):
            written = block.source(start, end)
            result.append(Mark(start, end, written, parent=parent, kept=True))
    return dataclasses.replace(block, marks=result)
