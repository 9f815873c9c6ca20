"""Markdown: CommonMark with tables and strikethrough, front matter, and HTML in it."""

import html
import re
from typing import Any

from keras_transformer.documents.block import Parts, TextBlock
from keras_transformer.documents.html_format import VOID, kind_of, read_html
from keras_transformer.documents.tags import INLINE, OPAQUE, TagReader
from keras_transformer.installation import install_hint

FRONT_MATTER = re.compile(
    r"\ufeff?(?:---\r?\n.*?\r?\n(?:---|\.\.\.)|\+\+\+\r?\n.*?\r?\n\+\+\+)[ \t]*\r?\n", re.DOTALL
)
SPECIAL = frozenset("\\`*_[]<~|")
TAG_NAME = re.compile(r"<(/?)([A-Za-z][\w-]*)")
# A character of text: escaped, a reference, or itself; the end of a line; a link without a text.
CHARACTER = re.compile(r"\\(?P<escaped>[!-/:-@\[-`{-~])|&(?:#\w{1,8}|\w{2,32});|.", re.DOTALL)
BREAK = re.compile(r"(?:[ \t]*|\\)\n[ \t]*")
NAMED = re.compile(r"\[(?:[^\[\]\\]|\\.)*\](?!\(|\[[^\]])", re.DOTALL)
AUTOLINK = re.compile(r"<[^<>\s]+>")
TITLE = r"""\s+(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\))"""
TARGET = r"<(?:[^<>\n\\]|\\.)*>|(?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.|\([^\s()]*\))*\))*"
# After the text of a link: its target, the name of its definition, or neither.
AFTER_LABEL = re.compile(rf"\]\(\s*(?:{TARGET})(?:{TITLE})?\s*\)|\]\[[^\]]*\]|\]", re.DOTALL)


def read_markdown(document: str) -> Parts:
    """Returns the blocks of a Markdown document, and what is between them.

    Raises:
        ValueError: If the package that reads Markdown is not installed.
    """
    front = FRONT_MATTER.match(document)
    begin = front.end() if front else 0
    text = document[begin:]
    lines = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text)), len(text)]
    parts: Parts = [document[:begin]]
    at = 0
    for token in _parser().parse(text):
        if token.map is None and token.type != "inline":
            continue
        if token.type == "html_block":
            start, end = lines[token.map[0]], lines[token.map[1]]
            parts += [text[at:start], *read_html(text[start:end])]
            at = end
        elif token.type == "inline" and token.map is not None:
            start, end = max(at, lines[token.map[0]]), lines[token.map[1]]
            characters = located(token.content, text, start, end)
            if characters is None:
                continue
            start, end, pairs = characters
            inline = InlineReader(pairs)
            parts += [text[at:start], *(inline.read(token.children or []) or [text[start:end]])]
            at = end
    parts.append(text[at:])
    return [part for part in parts if part]


def located(content: str, text: str, start: int, end: int) -> Any:
    """Returns where the content of a block is, and its characters as the document writes them.

    Args:
        content: The lines of the block without the marks before them, such as those of a quote.
        text: The document.
        start, end: Range of the lines of the block.

    Returns:
        Start and end in the document, and a list of pairs of a character and what the document has
        for it. `None`: the content is not there as it is.
    """
    pairs: list[tuple[str, str]] = []
    first = at = None
    for line in content.split("\n"):
        line = line.strip(" \t\r") if at is not None else line.rstrip("\r")
        raw = line
        place = text.find(raw, start if at is None else at, end)
        if place < 0 and "|" in line:  # in a cell of a table
            raw = line.replace("|", "\\|")
            place = text.find(raw, start if at is None else at, end)
        if place < 0:
            return None
        if at is None:
            first = place
        else:
            pairs.append(("\n", text[at:place]))
        escaped = raw != line
        pairs += [(one, "\\|" if escaped and one == "|" else one) for one in line]
        at = place + len(raw)
    return first, at, pairs


class InlineReader:
    """Reader of the text of a block, which follows the tokens of the parser.

    Args:
        pairs: The characters of the block; see `located`.
    """

    def __init__(self, pairs: list[tuple[str, str]]):
        self._pairs, self._at = pairs, 0
        self._content = "".join(one for one, _ in pairs)
        self._reader = TagReader(_kind_of, escape_markdown)
        self._is_autolink, self._link = False, ""

    def read(self, tokens: list) -> Parts | None:
        """Returns the parts of the block; `None` if its tokens and its characters differ."""
        for token in tokens:
            if not self._add(token):
                return None
        self._reader.other(self._raw(len(self._content)))
        return self._reader.finish()

    def _raw(self, end):
        """Returns the characters of the document up to a place, and goes there."""
        raw = "".join(one for _, one in self._pairs[self._at : end])
        self._at = end
        return raw

    def _take(self, string):
        """Returns the characters of the document if the content continues with a string."""
        if not self._content.startswith(string, self._at):
            return None
        return self._raw(self._at + len(string))

    def _add(self, token):
        kind = token.type
        if self._is_autolink:  # `_take` has read its text and its end
            self._is_autolink = kind != "link_close"
            return True
        if kind == "text":
            return self._text(token.content)
        if kind in ("softbreak", "hardbreak"):
            return self._break(kind)
        if kind.endswith(("_open", "_close")) and not kind.startswith("link"):
            raw, name = self._take(token.markup), kind.rpartition("_")[0]
            if raw is not None:
                (self._reader.start if kind.endswith("_open") else self._reader.end)(name, raw)
            return raw is not None
        if kind == "code_inline":
            return self._code(token.markup)
        if kind == "link_open" and token.markup == "autolink":
            match, self._is_autolink = AUTOLINK.match(self._content, self._at), True
            if match is not None:
                self._reader.other(self._raw(match.end()))
            return match is not None
        if kind == "link_open":
            # Without a target, the text is the name of a definition: it is copied.
            self._link = "name" if NAMED.match(self._content, self._at) else "link"
            raw = self._take("[")
            if raw is not None:
                self._reader.start(self._link, raw)
            return raw is not None
        if kind == "link_close":
            match = AFTER_LABEL.match(self._content, self._at)
            if match is not None:
                self._reader.end(self._link, self._raw(match.end()))
            return match is not None
        if kind == "image":
            return self._image(token)
        return kind == "html_inline" and self._tag(token.content)

    def _text(self, text):
        """Adds text, of which characters may be escaped or character references."""
        place = 0
        while place < len(text):
            match = CHARACTER.match(self._content, self._at)
            if match is None:
                return False
            written = match[0]
            characters = match["escaped"] or html.unescape(written)
            if not text.startswith(characters, place):  # no reference, but an ampersand
                written = characters = written[0]
            if not text.startswith(characters, place):
                return False
            raw = self._raw(self._at + len(written))
            if raw == characters:
                self._reader.text(raw)
            else:
                self._reader.coded(characters, raw)
            place += len(characters)
        return True

    def _break(self, kind):
        """Adds the end of a line; a hard one ends the block."""
        match = BREAK.match(self._content, self._at)
        if match is None:
            return False
        raw = self._raw(match.end())
        if kind == "hardbreak":
            self._reader.start("br", raw)
        else:
            self._reader.coded("\n", raw)
        return True

    def _code(self, markup):
        if self._take(markup) is None:
            return False
        end = re.compile(f"(?<!`){markup}(?!`)").search(self._content, self._at)
        if end is None:
            return False
        self._reader.start("code", markup)
        self._reader.text(self._raw(end.start()))
        self._reader.end("code", self._raw(end.end()))
        return True

    def _image(self, token):
        before = self._take(f"![{token.content}")
        match = AFTER_LABEL.match(self._content, self._at)
        if before is None or match is None:
            return False
        self._reader.other(before + self._raw(match.end()))
        return True

    def _tag(self, tag):
        raw, match = self._take(tag), TAG_NAME.match(tag)
        if raw is None:
            return False
        name = match[2].lower() if match else ""
        if not match or name in VOID or tag.endswith("/>"):
            self._reader.other(raw, name or None)
        else:
            (self._reader.end if match[1] else self._reader.start)(name, raw)
        return True


def escape_markdown(text: str, block: TextBlock) -> str:
    """Returns new text, in which signs that the block does not use as text are escaped."""
    if not SPECIAL.intersection(text):
        return text
    used = {one for place, one in enumerate(block.text) if place not in block.raw} - {"|"}
    return "".join(f"\\{one}" if one in SPECIAL - used else one for one in text)


def _kind_of(name, tag):
    if name == "name":
        return OPAQUE
    return INLINE if name in ("em", "strong", "s", "link") else kind_of(name, tag)


def _parser():
    try:
        from markdown_it import MarkdownIt
    except ModuleNotFoundError as error:
        needed = f"Markdown needs the package markdown-it-py: {install_hint('documents')}"
        raise ValueError(needed) from error
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])
