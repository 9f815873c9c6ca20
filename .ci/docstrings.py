"""Sections that docstrings in Keras's style have, in words that griffe knows.

A griffe extension, loaded by `mkdocs.yml`. Griffe reads Google's sections. It has no `Call
arguments`, takes only `Examples` for doctests, and reads every line of `Returns` as a type and a
description, where ours are sentences.
"""

import re

import griffe

SECTION = re.compile(r"^(Call arguments|Example|Returns|Yields):\n((?:(?: .*)?\n)+)", re.MULTILINE)
# A paragraph of its own: its first line has text after the colon.
PARAGRAPH = re.compile(r"^(Reference|Differs from the paper): (?=\S)", re.MULTILINE)


def _section(match):
    title, body = match.groups()
    if title == "Call arguments":
        return f"Other Args: Call arguments:\n{body}"
    lines = body.rstrip().split("\n")
    indent = len(lines[0]) - len(lines[0].lstrip())
    text = "\n".join(line[indent:] for line in lines)
    if title == "Example":
        text = f"```{'pycon' if '>>>' in text else 'python'}\n{text}\n```"
    return f"**{title}:**\n\n{text}\n\n"


class Sections(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj, loader, **kwargs):  # noqa: D102
        if obj.docstring is not None:
            text = SECTION.sub(_section, obj.docstring.value + "\n")
            obj.docstring.value = PARAGRAPH.sub(r"**\1:** ", text).rstrip()
