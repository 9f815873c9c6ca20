"""XML: elements beside text are inside it, and all others are blocks."""

import re
import xml.parsers.expat
from collections.abc import Callable
from typing import Any

from keras_transformer.documents.block import Parts
from keras_transformer.documents.html_format import UNTRANSLATED
from keras_transformer.documents.sentences import is_text
from keras_transformer.documents.tags import BLOCK, COPIED, INLINE, OPAQUE, TagReader

# Elements of XHTML, DocBook, DITA and JATS whose content is a program or a name.
NAMES = (
    "code command computeroutput filename codeph kbd literal monospace option samp svg userinput"
)
CODE = frozenset([*NAMES.split(), "varname", "var", "math"])
PRE = frozenset(["pre", "programlisting", "screen", "codeblock", "script", "style", "preformat"])
PRESERVED = re.compile(r"""\sxml:space\s*=\s*["']preserve""")


def read_xml(document: str) -> Parts:
    """Returns the blocks of an XML document, and what is between them.

    Raises:
        ValueError: If it is not well-formed.
    """
    events = XmlEvents(document)
    reader = TagReader(lambda name, _: name)  # the events have kinds as names
    for call, arguments in events.calls():
        getattr(reader, call)(*arguments)
    return reader.finish()


class XmlEvents:
    """The tags, texts and other parts of an XML document, read by expat.

    Internal entities are not expanded, and external ones are not read.

    Args:
        document: The document.

    Raises:
        ValueError: If it is not well-formed.
    """

    def __init__(self, document: str):
        self._bytes = document.encode()
        self._found: list[list] = []  # offset, kind, name or text, number of the element
        self._parents: list[int] = []  # of each element
        self._names: list[str] = []
        self._has_text: list[bool] = []
        self._open: list[int] = []
        parser = xml.parsers.expat.ParserCreate("utf-8")
        parser.UseForeignDTD(True)  # an unknown entity, such as &nbsp;, is no error
        parser.StartElementHandler = lambda name, _: self._start(parser, name)
        parser.EndElementHandler = lambda _: self._end(parser)
        parser.CharacterDataHandler = self._event(parser, "text")
        parser.StartCdataSectionHandler = self._event(parser, "cdata")
        parser.EndCdataSectionHandler = self._event(parser, "cdata_end")
        parser.DefaultHandler = self._event(parser, "other")
        try:
            parser.Parse(self._bytes, True)
        except xml.parsers.expat.ExpatError as error:
            raise ValueError(f"a document must be well-formed XML. Received: {error}.") from None

    def calls(self) -> list[tuple[str, tuple[str, ...]]]:
        """Returns the calls of a `TagReader` with the names of its methods and their arguments."""
        kinds = self._kinds()
        ends = [*(event[0] for event in self._found[1:]), len(self._bytes)]
        raws = [
            self._bytes[event[0] : end].decode()
            for event, end in zip(self._found, ends, strict=True)
        ]
        calls: list[tuple[str, tuple[str, ...]]] = []
        section, first = "", self._bytes[: self._found[0][0]].decode()
        if first:  # a byte order mark
            calls.append(("other", (first,)))
        for (_, event, text, number), raw in zip(self._found, raws, strict=True):
            if event == "cdata" or section:
                section += raw
                if event == "cdata_end":
                    calls.append(("other", (section,)))
                    section = ""
            elif event in ("start", "end"):
                calls.append((event, (kinds[number], raw)))
            elif event == "text":
                calls.append(("text", (raw,)) if raw == text else ("coded", (text, raw)))
            else:
                calls.append(("other", (raw,)))
        return calls

    def _event(self, parser: Any, kind: str) -> Callable[..., None]:
        def add(text=""):
            number = self._open[-1] if self._open else -1
            if kind == "text" and number >= 0 and is_text(text, 0, len(text)):
                self._has_text[number] = True
            self._found.append([parser.CurrentByteIndex, kind, text, number])

        return add

    def _start(self, parser, name):
        self._parents.append(self._open[-1] if self._open else -1)
        self._names.append(name.rpartition(":")[2].lower())
        self._has_text.append(False)
        self._open.append(len(self._names) - 1)
        self._found.append([parser.CurrentByteIndex, "start", name, self._open[-1]])

    def _end(self, parser):
        # For a tag that closes itself, expat reports the place after it: the end has no characters.
        self._found.append([parser.CurrentByteIndex, "end", "", self._open.pop()])

    def _kinds(self):
        """Returns the kind of each element: inside a text if there is text directly beside it."""
        kinds = []
        tags = {
            number: place
            for place, (_, kind, _, number) in enumerate(self._found)
            if kind == "start"
        }
        for number, (parent, name) in enumerate(zip(self._parents, self._names, strict=True)):
            place = tags[number]
            end = self._found[place + 1][0]
            tag = self._bytes[self._found[place][0] : end].decode()
            untranslated = UNTRANSLATED.search(tag)
            if parent >= 0 and (self._has_text[parent] or kinds[parent] == INLINE):
                kinds.append(OPAQUE if name in CODE or untranslated else INLINE)
            elif name in PRE or untranslated or PRESERVED.search(tag):
                kinds.append(COPIED)
            else:
                kinds.append(BLOCK)
        return kinds
