"""`TextPairsTask`, the base of tasks whose data are pairs of texts that belong together."""

import abc
import time
from collections.abc import Callable
from typing import Any

from keras_transformer.tasks.correlation import spearman
from keras_transformer.tasks.partners import ranks_of_partners, recall_at
from keras_transformer.tasks.task import Task
from keras_transformer.text.lines import read_lines
from keras_transformer.text.numbers import parse_number

Similarities = Callable[[slice, Any], Any]


class TextPairsTask(Task):
    """A task that is trained on pairs of texts; every text is compared with those of its batch."""

    columns = ("text", "similar")
    file_columns = ("pairs of texts, or pairs with a score,",)
    texts = {"source": ("text", "similar")}
    unit = "examples"
    unused = ("training.r_drop", "training.label_smoothing")

    def check(self, settings) -> None:
        """Refuses gradient accumulation, whose batches do not see each other's texts."""
        if settings.training.accumulate > 1:
            raise ValueError(
                f"`training.accumulate` must be 1 for {self.name}: every text is compared with "
                "those of its own batch, so that several small batches are not one large batch. "
                f"Received: training.accumulate={settings.training.accumulate}."
            )

    def read_files(self, source, reference=None) -> list[list]:
        """Reads a file with two texts on each line and, on every line or on none, a score.

        Args:
            source: Path of the file; its columns are separated by tabs.
            reference: `None`.

        Returns:
            Lists of the first texts, the second texts and, if there are any, the scores.

        Raises:
            ValueError: If a line is not UTF-8 or has other columns, or a score is not a number.
        """
        rows: list[list[Any]] = [line.split("\t") for line in read_lines(source)]
        width = len(rows[0]) if rows else 2
        for number, row in enumerate(rows, start=1):
            where = f"{source}, line {number}: "
            if len(row) not in (2, 3):
                raise ValueError(
                    f"{where}must have two texts, or two texts and a score, separated by tabs. "
                    f"Received: {len(row)} columns."
                )
            if len(row) != width:
                raise ValueError(
                    f"{where}must have {width} columns, as line 1. Received: {len(row)} columns."
                )
            if width == 3 and (value := parse_number(row[2].strip(" \r"))) is None:
                raise ValueError(f"{where}the score must be a number. Received: {row[2]!r}.")
            if width == 3:
                row[2] = value
        return [list(column) for column in zip(*rows, strict=True)] or [[], []]

    @abc.abstractmethod
    def similarities(self, pipeline: Any, results: list, others: list) -> Similarities:
        """Returns a function of the similarities of texts: see `ranks_of_partners`.

        Args:
            pipeline: A `pipeline_class`.
            results: Its results for texts.
            others: Its results for their partners.
        """

    @abc.abstractmethod
    def of_pairs(self, pipeline: Any, results: list, others: list) -> Any:
        """Returns the similarity of each text and its partner, which scores are compared with.

        Args:
            pipeline, results, others: See `similarities`.
        """

    def sizes(self, results: list, others: list) -> dict[str, float]:
        """Returns further metrics, of the sizes of the results for texts and for their partners."""
        return {}

    def measure(self, pipeline: Any, inputs: list, references: list) -> dict[str, Any]:
        """Returns `recall_at_1`, from 0 to 100, and what `sizes` returns; see `evaluate`."""
        results = pipeline.answer([*inputs, *references])
        ours, theirs = results[: len(inputs)], results[len(inputs) :]
        ranks = ranks_of_partners(self.similarities(pipeline, ours, theirs), inputs, references)
        return {"recall_at_1": recall_at(ranks, 1), **self.sizes(ours, theirs)}

    def evaluate(self, pipeline: Any, columns: Any) -> dict[str, Any]:
        """Compares the similarities of texts with pairs or with scores.

        Args:
            pipeline: A `pipeline_class`.
            columns: Lists of the first and the second texts, and of their scores if there are any.

        Returns:
            A dictionary. With scores: `spearman`, 100 times the rank correlation of the scores with
            the similarities of the pairs. Without: `recall_at_1`, `recall_at_5` and `recall_at_10`,
            from 0 to 100, the share of texts whose partner is among the most similar candidates;
            and `candidates`, the number of different second texts. See `ranks_of_partners`. In any
            case what `sizes` returns; `pairs`; `truncated`, the number of texts that were
            truncated; and `seconds`.

        Raises:
            ValueError: If there are no pairs, or all scores are equal.
        """
        texts, others, *scores = columns
        if not texts:
            raise ValueError("There are no pairs of texts to evaluate.")
        if scores and len({*scores[0]}) < 2:
            raise ValueError(
                "The scores of the pairs must differ: a rank correlation with equal scores is not "
                f"defined. Received: {len(scores[0])} times {scores[0][0]}."
            )
        begin = time.monotonic()
        results = pipeline.answer([*texts, *others])
        seconds = round(time.monotonic() - begin, 3)
        ours, theirs = results[: len(texts)], results[len(texts) :]
        if scores:
            metrics = {"spearman": spearman(self.of_pairs(pipeline, ours, theirs), scores[0])}
        else:
            ranks = ranks_of_partners(self.similarities(pipeline, ours, theirs), texts, others)
            metrics = {f"recall_at_{count}": recall_at(ranks, count) for count in (1, 5, 10)}
            metrics["candidates"] = len({*others})
        counts = {
            "pairs": len(texts),
            "truncated": sum(result.truncated for result in results),
            "seconds": seconds,
        }
        return {**metrics, **self.sizes(ours, theirs), **counts}
