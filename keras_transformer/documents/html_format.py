"""HTML: pages and fragments of pages."""

import html
import html.parser
import re

from keras_transformer.documents.block import Parts
from keras_transformer.documents.tags import BLOCK, COPIED, INLINE, OPAQUE, POINT, TagReader

# The elements inside a line of text ("phrasing content" of the HTML standard). All others end it.
ELEMENTS = {
    INLINE: "a abbr acronym b bdi bdo big blink cite data del dfn em font i ins label mark nobr q "
    "ruby s small span strike strong sub sup time tt u",
    OPAQUE: "code kbd math rp rt samp svg var",
    POINT: "img input wbr",
    # programs, and text in which white space has a meaning
    COPIED: "audio canvas iframe listing object pre script style template textarea video xmp",
}
KINDS = {name: kind for kind, names in ELEMENTS.items() for name in names.split()}
UNTRANSLATED = re.compile(
    r"""\stranslate\s*=\s*["']?no\b|\sclass\s*=\s*["'][^"']*\bnotranslate\b""", re.IGNORECASE
)
NO_CONTENT = "area base br col embed hr img input link meta param source track wbr"
VOID = frozenset(NO_CONTENT.split())


def read_html(document: str) -> Parts:
    """Returns the blocks of an HTML page, or of a fragment of one, and what is between them."""
    reader = TagReader(kind_of)
    events = HtmlEvents(document)
    events.feed(document)
    events.close()
    events.replay(reader)
    return reader.finish()


def kind_of(name: str, tag: str) -> str:
    """Returns the kind of an element of HTML."""
    kind = KINDS.get(name, BLOCK)
    if kind in (BLOCK, INLINE) and name not in VOID and UNTRANSLATED.search(tag):
        return COPIED if kind == BLOCK else OPAQUE
    return kind


class HtmlEvents(html.parser.HTMLParser):
    """The tags, texts and other parts of a page, with their places.

    Args:
        document: The page.
    """

    def __init__(self, document: str):
        super().__init__(convert_charrefs=False)
        self._document = document
        self._found: list[tuple[int, str, str]] = []  # offset, kind, and name or text
        self._lines = [0, *(match.end() for match in re.finditer("\n", document))]

    def replay(self, reader: TagReader) -> None:
        """Passes everything to a reader; together the parts are the document."""
        if not self._found:
            return reader.other(self._document)
        begins = [offset for offset, *_ in self._found]
        ends = [*begins[1:], len(self._document)]
        if begins[0]:
            reader.other(self._document[: begins[0]])
        for (begin, kind, name), end in zip(self._found, ends, strict=True):
            raw = self._document[begin:end]
            if kind == "start" and name not in VOID:
                reader.start(name, raw)
            elif kind == "end":
                reader.end(name, raw)
            elif kind in ("start", "empty"):
                reader.other(raw, name)
            elif kind in ("text", "reference") and raw.startswith(name):
                length = len(name)
                if kind == "text":
                    reader.text(raw[:length])
                else:
                    length += raw[length : length + 1] == ";"
                    reader.coded(html.unescape(raw[:length]), raw[:length])
                if raw[length:]:  # what the parser has skipped, such as </>
                    reader.other(raw[length:])
            else:
                reader.other(raw)

    def _add(self, kind, name=""):
        line, column = self.getpos()
        self._found.append((self._lines[line - 1] + column, kind, name))

    def handle_starttag(self, tag, attrs):  # noqa: D102
        self._add("start", tag)

    def handle_startendtag(self, tag, attrs):  # noqa: D102
        self._add("empty", tag)

    def handle_endtag(self, tag):  # noqa: D102
        self._add("end", tag)

    def handle_data(self, data):  # noqa: D102
        self._add("text", data)

    def handle_entityref(self, name):  # noqa: D102
        self._add("reference", f"&{name}")

    def handle_charref(self, name):  # noqa: D102
        self._add("reference", f"&#{name}")

    def handle_comment(self, data):  # noqa: D102
        self._add("other")

    def handle_decl(self, decl):  # noqa: D102
        self._add("other")

    def handle_pi(self, data):  # noqa: D102
        self._add("other")

    def unknown_decl(self, data):  # noqa: D102
        self._add("other")
