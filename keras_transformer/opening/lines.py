"""Answers to numbered lines, and the format in which they are written.

The classes here are functions of the numbers of the lines, their texts, a batch size, and a
function that is called after each batch with the number of texts so far. For each line they return
a list of results, such as `Translation`s or one `Alignment`, or the `ValueError` that explains why
there is none. `stream.outcomes` lists their optional attributes.
"""

import dataclasses
import json
from typing import Any

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tasks.answering import Answering, PassAnswering
from keras_transformer.tasks.incomplete import CUT
from keras_transformer.tasks.strings import encode, map_sorted
from keras_transformer.text.lines import one_line

NEARLY_FULL = "the prompt nearly fills the model's {} positions"
FEW_LEFT = ": at most {} could follow it"


def lines_of(answering, n=None, aligned=False, warn=None) -> Any:
    """Returns the function that answers the lines of a text.

    Args:
        answering: An `Answering`.
        n: Maximum number of results of a line. `None`: the best one.
        aligned: Whether to return `Alignment`s.
        warn: Function that is called with a line of text for each gap in a series that is filled.
            `None`: no warnings.
    """
    if aligned:
        return AlignedLines(answering)
    if answering.generates:
        return TextLines(answering, n)
    if answering.codec.simulates:
        return answering.codec.lines(answering.run, warn)
    return PassLines(answering)


@dataclasses.dataclass(frozen=True)
class Lines:
    """Base class of functions that answer lines.

    Args:
        answering: An `Answering`.
    """

    answering: Answering


@dataclasses.dataclass(frozen=True)
class TextLines(Lines):
    """Texts that are generated for lines.

    Args:
        answering: A `TextAnswering`.
        n: Maximum number of results of a line. `None`: the best one.
    """

    answering: Any
    n: int | None = None

    @property
    def blank(self) -> bool:
        """`True` if an empty line stays empty."""
        return self.answering.blank

    def __call__(self, numbers, texts, batch_size, progress=None) -> list:
        """Returns a list of at most `n` results for each line."""
        how: dict[str, Any] = {"batch_size": batch_size, "progress": progress}
        how["numbers"] = [number - 1 for number in numbers]  # indices in a list of all lines
        if self.n is None:
            return [[result] for result in self.answering.answer(texts, **how)]
        return self.answering.n_best(texts, self.n, self.answering.search, **how)

    def warning(self, text, results) -> str | None:
        """Returns a warning about words that an output lacks, or a prompt with too few positions.

        Args:
            text: The line.
            results: Its results.

        Returns:
            A line of text; `None` if the words are as wanted, and if a prompt leaves as many
            positions as the search may need, or two without a limit, or the text is no prompt.
        """
        wording = getattr(self.answering, "wording", None)
        if wording is not None and (complaint := wording.complaint(text, results[0].text)):
            return complaint
        longest = self.answering.max_length
        if self.blank or longest is None or all(result.complete for result in results):
            return None
        wanted = getattr(self.answering.search, "max_length", None) or 2
        if len(text.encode()) + 2 + wanted <= longest:  # a token has at least one byte
            return None
        ids, *_ = encode(self.answering.tokenizers.source, tf.constant([text]), longest)
        left = longest - int(ids.row_lengths()[0]) + 1
        if left >= wanted:
            return None
        new = "1 new token" if left == 1 else f"{left} new tokens"
        reason = CUT if results[0].truncated else NEARLY_FULL.format(longest)
        return reason + FEW_LEFT.format(new)


@dataclasses.dataclass(frozen=True)
class PassLines(Lines):
    """Answers by a model that needs one pass, such as a classifier.

    Args:
        answering: A `PassAnswering`.
    """

    answering: PassAnswering

    @property
    def blank(self) -> bool:
        """`True` if an empty line stays empty."""
        return self.answering.codec.blank

    def parse(self, line) -> Any:
        """Returns the example in a line; raises a `ValueError` for a bad line."""
        return self.answering.codec.parse(line)

    def __call__(self, numbers, examples, batch_size, progress=None) -> list:
        """Returns for each line a list of one `Result`, or the `ValueError` of its example."""
        codec = self.answering.codec
        batch_size = min(batch_size, codec.together or batch_size)
        results = map_sorted(self._answer, examples, batch_size, codec.size, progress)
        return [result if isinstance(result, ValueError) else [result] for result in results]

    def _answer(self, batch):
        """Returns a `Result` for each example, or a `ValueError` for a refused one.

        The model refuses a batch as a whole if it refuses one of its examples. The batch is then
        answered in halves.
        """
        try:
            return self.answering.answer_batch(batch)
        except ValueError as error:
            if len(batch) == 1:
                return [self._refusal(batch[0], error)]
        middle = len(batch) // 2
        return [*self._answer(batch[:middle]), *self._answer(batch[middle:])]

    def _refusal(self, example, error):
        """Returns the error of an example, from the codec if possible: it is more precise."""
        try:
            self.answering.codec.verify(example)
        except ValueError as better:
            return better
        return error


@dataclasses.dataclass(frozen=True)
class AlignedLines(Lines):
    """Translations by greedy search with their alignments.

    Args:
        answering: A `TextAnswering` that aligns.
    """

    answering: Any

    def __call__(self, numbers, texts, batch_size, progress=None) -> list:
        """Returns a list of one `Alignment` for each line."""
        how = {"batch_size": batch_size, "progress": progress}
        return [[result] for result in self.answering.align(texts, **how)]


@dataclasses.dataclass(frozen=True)
class LineFormat:
    """Format of written results: fields separated by tabs; by default, only the text.

    Args:
        numbers: Whether a result begins with the number of its input line, from 1.
        scores: Whether the score comes before the text.
        alignments: Whether pairs such as `0-1` come after the text; see `Alignment.words`.
        token_scores: Whether the tokens and their scores come after the text, as a list in JSON;
            see `Generated`.
        timestamps: Whether a result has a line for each of its segments, with the number of its
            input line, the start and the end in seconds, and the text.
        words: With `timestamps`: whether there is a line for each word instead.
        nothing: Text for a line that is empty or bad.
    """

    numbers: bool = False
    scores: bool = False
    alignments: bool = False
    token_scores: bool = False
    timestamps: bool = False
    words: bool = False
    nothing: str = ""

    def lines(self, number, results) -> list[str]:
        """Returns the output lines for one input line.

        Args:
            number: Number of the input line.
            results: List of `Translation`s, or of one `Alignment`. Empty or `None`: the text is
                empty.
        """
        if self.timestamps:
            segments = ()
            if results:
                segments = results[0].words if self.words else results[0].segments
            rows = [(one.start, one.end, one.text) for one in segments] or [(0, 0, "")]
            texts = [one_line(text).replace("\t", " ") for *_, text in rows]
            return [
                f"{number}\t{start:.2f}\t{end:.2f}\t{text}"
                for (start, end, _), text in zip(rows, texts, strict=True)
            ]
        return [self._line(number, result) for result in results or [None]]

    def _line(self, number, result):
        translation = getattr(result, "translation", result)
        fields = [str(number)] if self.numbers else []
        if self.scores:
            fields.append(f"{translation.score if translation else 0:.5f}")
        text = one_line(translation.text) if translation else self.nothing
        fields.append(text if self == LineFormat() else text.replace("\t", " "))
        if self.alignments:
            pairs = result.words() if result else []
            fields.append(" ".join(f"{source}-{target}" for source, target in pairs))
        if self.token_scores:
            scores = translation.token_scores if translation else ()
            rounded = [(token, round(gain, 5)) for token, gain in scores]
            fields.append(json.dumps(rounded, ensure_ascii=False))
        return "\t".join(fields)
