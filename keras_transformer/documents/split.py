"""Blocks divided into sentences, which are translated and put together again."""

import bisect
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from keras_transformer.decoding import Beam, Sample
from keras_transformer.documents.block import TextBlock, core
from keras_transformer.documents.placing import write_block
from keras_transformer.documents.sentences import divided, halves, is_text
from keras_transformer.documents.units import copied_units, translated_units
from keras_transformer.documents.words import literals_of, one_spaced


@dataclasses.dataclass
class Passage:
    """A sentence of a block, or a part of a long one, on its way to its translation.

    Args:
        block: The `TextBlock`.
        start, end: Its range in the text of the block.
        has_marks: Whether marks begin, end or are inside it.
        is_part: Whether it is a part of a sentence that is longer than the model's limit.
        translation: Its `Translation`.
        alignment: Its `Alignment`, or `None`.
        parts: The parts into which it was divided instead.
    """

    block: TextBlock
    start: int
    end: int
    has_marks: bool = False
    is_part: bool = False
    translation: Any = None
    alignment: Any = None
    parts: Sequence["Passage"] = ()

    @property
    def text(self) -> str:
        """The text as the model reads it, with single spaces."""
        return one_spaced(self.block.text, self.start, self.end)[0]

    def leaves(self) -> Iterator["Passage"]:
        """Yields the passages that were translated, in order."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def divide(self) -> Sequence["Passage"]:
        """Returns its two parts, and keeps them; none if it is too short."""
        spans = halves(self.block.text, self.start, self.end)
        cores = [core(self.block.text, *span) for span in spans]
        if len(spans) > 1:
            self.parts = [
                dataclasses.replace(self, start=start, end=end, is_part=True, alignment=None)
                for start, end in cores
                if start < end
            ]
        return self.parts


@dataclasses.dataclass
class SplitBlock:
    """A block and the passages of it that are translated; the rest is copied."""

    block: TextBlock
    passages: list[Passage]

    @classmethod
    def of(cls, block: TextBlock, splitter: Any, longest: int) -> "SplitBlock":
        """Returns a block with its sentences.

        Args:
            block: The block.
            splitter: Function from a text to the ranges of its sentences.
            longest: Maximum number of characters of a sentence; longer ones are divided.
        """
        text = block.text
        kept = sorted((mark.start, mark.end) for mark in block.marks if mark.kept)
        edges = sorted(edge for mark in block.marks for edge in (mark.start, mark.end))
        passages = []
        for sentence in _joined(splitter(text), kept):
            spans = divided(text, [sentence], longest)
            for start, end in (core(text, *span) for span in spans):
                if start < end and _has_text(text, start, end, kept):
                    inside = bisect.bisect_right(edges, start) < bisect.bisect_left(edges, end)
                    passages.append(Passage(block, start, end, inside, len(spans) > 1))
        return cls(block, passages)

    def written(self) -> str:
        """Returns the translation of the block, as the document writes it."""
        block, at, units = self.block, 0, []
        for passage in (leaf for one in self.passages for leaf in one.leaves()):
            start, end, text = passage.start, passage.end, passage.translation.text
            units += copied_units(block, at, start)
            literals = literals_of(block, start, end)
            units += translated_units(
                block, start, end, text, passage.alignment, literals, passage.has_marks
            )
            at = end
        return write_block(block, [*units, *copied_units(block, at, len(block.text))])


def passages_of(part: str | SplitBlock) -> list[Passage]:
    """Returns the passages of a part of a document."""
    return [] if isinstance(part, str) else part.passages


def translate(answering: Any, passages: Sequence[Passage], batch_size: int, progress: Any) -> None:
    """Translates passages; one that the model would truncate is divided until it fits."""
    aligns = answering.aligns and not isinstance(answering.search, Beam | Sample)
    done = 0

    def show(count):
        if progress is not None:
            progress(done + count)

    while passages:
        marked = [one for one in passages if one.has_marks and aligns]
        others = [one for one in passages if not (one.has_marks and aligns)]
        how = {"batch_size": batch_size, "progress": show}
        if others:
            results = answering.answer([one.text for one in others], **how)
            for passage, result in zip(others, results, strict=True):
                passage.translation = result
            done += len(others)
        if marked:
            results = answering.align([one.text for one in marked], **how)
            for passage, result in zip(marked, results, strict=True):
                passage.translation, passage.alignment = result.translation, result
            done += len(marked)
        passages = [part for one in passages if one.translation.truncated for part in one.divide()]


def _joined(spans, kept):
    """Returns ranges of sentences, of which those that divide a kept passage are one."""
    inside = {edge for start, end in kept for edge in range(start + 1, end)}
    result = []
    for start, end in spans:
        if result and start in inside:
            start = result.pop()[0]
        result.append((start, end))
    return result


def _has_text(text, start, end, kept):
    """Returns whether a range has a letter outside of kept passages."""
    near = bisect.bisect_left(kept, (start, -1))
    for first, last in kept[max(near - 1, 0) :]:
        if first >= end:
            break
        if start < last:
            if is_text(text, start, max(start, first)):
                return True
            start = max(start, last)
    return is_text(text, start, end)
