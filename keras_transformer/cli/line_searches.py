"""Functions of numbered lines: the best, several, random or aligned translations, or answers.

Each is a function of numbered lines: it takes the numbers of the lines, their texts and a batch
size, and returns for each line a list of results, such as `Translation`s or one `Alignment`; or the
`ValueError` that says why it has none. What else it may have is in `streaming.answer_stream`.
"""

import dataclasses
import functools
import typing

from keras_transformer.tasks.strings import map_sorted
from keras_transformer.text.lines import one_line


@dataclasses.dataclass(frozen=True)
class OwnSearch:
    """The translation that an export's own search finds.

    Args:
        translator: Anything with `translate_batch`.
    """

    translator: typing.Any

    @property
    def blank(self):
        """Whether an empty line stays empty."""
        return self.translator.blank

    def __call__(self, numbers, texts, batch_size):
        """Returns a list of one `Translation` for each line."""
        results = map_sorted(self.translator.translate_batch, texts, batch_size)
        return [[result] for result in results]


@dataclasses.dataclass(frozen=True)
class Several:
    """The best few translations of a beam of an export.

    Args:
        translator: Anything with `n_best_batch`.
        n: Translations of each line.
    """

    translator: typing.Any
    n: int

    @property
    def blank(self):
        """Whether an empty line stays empty."""
        return self.translator.blank

    def __call__(self, numbers, texts, batch_size):
        """Returns a list of at most `n` `Translation`s for each line."""
        n_best = functools.partial(self.translator.n_best_batch, n=self.n)
        return map_sorted(n_best, texts, batch_size)


@dataclasses.dataclass(frozen=True)
class Searched:
    """The translations that a search of a run's model finds.

    Args:
        translator: A `Translator`.
        search: The search. A sample depends on the number of its line.
        n: Translations of each line.
    """

    translator: typing.Any
    search: typing.Any
    n: int = 1

    @property
    def blank(self):
        """Whether an empty line stays empty."""
        return self.translator.blank

    def __call__(self, numbers, texts, batch_size):
        """Returns a list of at most `n` `Translation`s for each line."""
        places = [number - 1 for number in numbers]  # as in a list of all lines
        return self.translator.n_best(texts, self.n, self.search, batch_size, places)


@dataclasses.dataclass(frozen=True)
class Answered:
    """The answer to each line of a model that answers in one pass.

    Args:
        model: Anything with `answer_batch` and a `codec`.
    """

    model: typing.Any

    @property
    def blank(self):
        """Whether an empty line stays empty."""
        return self.model.codec.blank

    def parse(self, line):
        """Returns the example that a line is; raises a `ValueError` if it is none."""
        return self.model.codec.parse(line)

    def __call__(self, numbers, examples, batch_size):
        """Returns for each line a list of one `Result`, or the `ValueError` of its example."""
        size = self.model.codec.size
        results = map_sorted(self._answer, examples, batch_size, size)
        return [result if isinstance(result, ValueError) else [result] for result in results]

    def _answer(self, batch):
        """A `Result` of each example, or the error of one that is refused.

        A batch with such an example is refused as a whole, and answered in halves.
        """
        try:
            return self.model.answer_batch(batch)
        except ValueError as error:
            if len(batch) == 1:
                return [self._refusal(batch[0], error)]
        middle = len(batch) // 2
        return [*self._answer(batch[:middle]), *self._answer(batch[middle:])]

    def _refusal(self, example, error):
        """Returns the error of an example: that of its codec, which knows more than the model."""
        try:
            self.model.codec.verify(example)
        except ValueError as better:
            return better
        return error


@dataclasses.dataclass(frozen=True)
class Aligned:
    """The translation of greedy search with what it attended to.

    Args:
        translator: A `Translator`.
    """

    translator: typing.Any

    def __call__(self, numbers, texts, batch_size):
        """Returns a list of one `Alignment` for each line."""
        return [[result] for result in self.translator.align(texts, batch_size=batch_size)]


@dataclasses.dataclass(frozen=True)
class Format:
    """How results are written: fields separated by tabs, in this order; the text alone by default.

    Args:
        numbers: Whether each line begins with the number of the line it translates, from 1.
        scores: Whether the score stands before the text.
        alignments: Whether pairs such as `0-1` stand after it: see `Alignment.words`.
    """

    numbers: bool = False
    scores: bool = False
    alignments: bool = False

    def lines(self, number, results):
        """Returns what is written for one line of the input; for an empty one an empty text.

        Args:
            number: Number of the line.
            results: List of `Translation`s, or of one `Alignment`.
        """
        return [self._line(number, result) for result in results or [None]]

    def _line(self, number, result):
        translation = getattr(result, "translation", result)
        fields = [str(number)] if self.numbers else []
        if self.scores:
            fields.append(f"{translation.score if translation else 0:.5f}")
        text = one_line(translation.text) if translation else ""
        fields.append(text if self == Format() else text.replace("\t", " "))
        if self.alignments:
            pairs = result.words() if result else []
            fields.append(" ".join(f"{source}-{target}" for source, target in pairs))
        return "\t".join(fields)
