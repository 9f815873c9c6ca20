"""Functions that answer numbered lines, and the format of their answers.

Each function takes the numbers of the lines, their texts, a batch size, and a function that is
called after each batch with the number of texts so far. For each line it returns a list of results,
such as `Translation`s or one `Alignment`, or the `ValueError` that explains why there is none.
`streaming.answer_stream` lists its optional attributes.
"""

import dataclasses
import functools
import typing
from typing import Any

import tensorflow as tf

from keras_transformer.tasks.incomplete import CUT
from keras_transformer.tasks.strings import encode, map_sorted
from keras_transformer.text.lines import one_line

NEARLY_FULL = "the prompt nearly fills the model's {} positions"
FEW_LEFT = ": at most {} could follow it"


@dataclasses.dataclass(frozen=True)
class Translating:
    """Base class of functions that translate lines.

    Args:
        translator: A pipeline or a loaded export that generates text.
    """

    translator: typing.Any

    @property
    def blank(self) -> bool:
        """`True` if an empty line stays empty."""
        return self.translator.blank

    def warning(self, text, results) -> str | None:
        """Returns a warning about a prompt after which the model has too few positions.

        Args:
            text: The prompt.
            results: Its results.

        Returns:
            A line of text; `None` if the prompt leaves as many positions as the search may need, or
            two without a limit, or if the text is no prompt.
        """
        longest = getattr(self.translator, "max_length", None)
        if (
            getattr(self, "blank", True)
            or longest is None
            or all(result.complete for result in results)
        ):
            return None
        search = getattr(self, "search", None) or getattr(self.translator, "search", None)
        wanted = getattr(search, "max_length", None) or 2
        if len(text.encode()) + 2 + wanted <= longest:  # a token has at least one byte
            return None
        ids, *_ = encode(self.translator.tokenizers.source, tf.constant([text]), longest)
        left = longest - int(ids.row_lengths()[0]) + 1
        if left >= wanted:
            return None
        new = "1 new token" if left == 1 else f"{left} new tokens"
        reason = CUT if results[0].truncated else NEARLY_FULL.format(longest)
        return reason + FEW_LEFT.format(new)


@dataclasses.dataclass(frozen=True)
class OwnSearch(Translating):
    """Translation by the search that an export contains.

    Args:
        translator: An object with a method `translate_batch`.
    """

    def __call__(self, numbers, texts, batch_size, progress=None) -> list:
        """Returns a list of one `Translation` for each line."""
        results = map_sorted(self.translator.translate_batch, texts, batch_size, progress=progress)
        return [[result] for result in results]


@dataclasses.dataclass(frozen=True)
class Several(Translating):
    """Several translations of each line by the beam search of an export.

    Args:
        translator: An object with a method `n_best_batch`.
        n: Maximum number of translations of a line.
    """

    n: int

    def __call__(self, numbers, texts, batch_size, progress=None) -> list:
        """Returns a list of at most `n` `Translation`s for each line."""
        n_best = functools.partial(self.translator.n_best_batch, n=self.n)
        return map_sorted(n_best, texts, batch_size, progress=progress)


@dataclasses.dataclass(frozen=True)
class Searched(Translating):
    """Translations by any search with the model of a run.

    Args:
        translator: A `Translator`.
        search: The search. A sample depends on its line number.
        n: Maximum number of translations of a line.
    """

    search: typing.Any
    n: int = 1

    def __call__(self, numbers, texts, batch_size, progress=None) -> list:
        """Returns a list of at most `n` `Translation`s for each line."""
        places = [number - 1 for number in numbers]  # indices in a list of all lines
        search = self.search
        return self.translator.n_best(texts, self.n, search, batch_size, places, progress)


@dataclasses.dataclass(frozen=True)
class Answered:
    """Answers by a model that needs one pass, such as a classifier.

    Args:
        model: An object with a method `answer_batch` and a `codec`.
    """

    model: typing.Any

    @property
    def blank(self) -> bool:
        """`True` if an empty line stays empty."""
        return self.model.codec.blank

    def parse(self, line) -> Any:
        """Returns the example in a line; raises a `ValueError` for a bad line."""
        return self.model.codec.parse(line)

    def __call__(self, numbers, examples, batch_size, progress=None) -> list:
        """Returns for each line a list of one `Result`, or the `ValueError` of its example."""
        codec = self.model.codec
        batch_size = min(batch_size, codec.together or batch_size)
        results = map_sorted(self._answer, examples, batch_size, codec.size, progress)
        return [result if isinstance(result, ValueError) else [result] for result in results]

    def _answer(self, batch):
        """Returns a `Result` for each example, or a `ValueError` for a refused one.

        The model refuses a batch as a whole if it refuses one of its examples. The batch is then
        answered in halves.
        """
        try:
            return self.model.answer_batch(batch)
        except ValueError as error:
            if len(batch) == 1:
                return [self._refusal(batch[0], error)]
        middle = len(batch) // 2
        return [*self._answer(batch[:middle]), *self._answer(batch[middle:])]

    def _refusal(self, example, error):
        """Returns the error of an example, from the codec if possible: it is more precise."""
        try:
            self.model.codec.verify(example)
        except ValueError as better:
            return better
        return error


@dataclasses.dataclass(frozen=True)
class Aligned:
    """Translations by greedy search with their alignments.

    Args:
        translator: A `Translator`.
    """

    translator: typing.Any

    def __call__(self, numbers, texts, batch_size, progress=None) -> list:
        """Returns a list of one `Alignment` for each line."""
        how = {"batch_size": batch_size, "progress": progress}
        return [[result] for result in self.translator.align(texts, **how)]


@dataclasses.dataclass(frozen=True)
class Format:
    """Format of written results: fields separated by tabs; by default, only the text.

    Args:
        numbers: Whether a result begins with the number of its input line, from 1.
        scores: Whether the score comes before the text.
        alignments: Whether pairs such as `0-1` come after the text; see `Alignment.words`.
        timestamps: Whether a result has a line for each of its segments, with the number of its
            input line, the start and the end in seconds, and the text.
        nothing: Text for a line that is empty or bad.
    """

    numbers: bool = False
    scores: bool = False
    alignments: bool = False
    timestamps: bool = False
    nothing: str = ""

    def lines(self, number, results) -> list[str]:
        """Returns the output lines for one input line.

        Args:
            number: Number of the input line.
            results: List of `Translation`s, or of one `Alignment`. Empty or `None`: the text is
                empty.
        """
        if self.timestamps:
            segments = results[0].segments if results else ()
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
        fields.append(text if self == Format() else text.replace("\t", " "))
        if self.alignments:
            pairs = result.words() if result else []
            fields.append(" ".join(f"{source}-{target}" for source, target in pairs))
        return "\t".join(fields)
