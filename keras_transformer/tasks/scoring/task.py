"""The task of scoring pairs of texts."""

import time
from typing import Any

from keras_transformer.tasks.scoring.config import PairScorerConfig
from keras_transformer.tasks.scoring.metrics import pair_metrics
from keras_transformer.tasks.task import LOSS, Metric, Task
from keras_transformer.text.lines import parse_lines
from keras_transformer.text.numbers import parse_number
from keras_transformer.text.pairs import parse

SPACES = " \t\r"  # removed around a number


class ScoringTask(Task):
    """Scores of pairs of texts by a `PairScorer`, trained on pairs with a number each.

    An input is a pair of strings, query and passage; its reference is a number. In lines of text, a
    tab separates query and passage.
    """

    name = "scoring"
    columns = ("query", "passage", "label")
    file_columns = ("queries with passages", "labels")
    texts = {"source": ("query", "passage")}
    training = "keras_transformer.training.tasks.scoring:ScoringTraining"
    config_class = PairScorerConfig
    metrics = {
        "loss": LOSS,
        "spearman": Metric("rank correlation", higher_is_better=True, of_answers=True),
    }
    unit = "examples"
    unused = ("training.r_drop", "training.label_smoothing")
    fixed = {"subword_sampling": 0.0}

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.scoring.pipeline import Reranker

        return Reranker

    def examples(self, columns) -> list[list]:
        """Returns pairs of query and passage, and the label of each, a float."""
        labels = [_number(label, f"example {n}") for n, label in enumerate(columns["label"], 1)]
        return [list(zip(columns["query"], columns["passage"], strict=True)), labels]

    def read_files(self, source, reference=None) -> list[list]:
        """Reads lines with tabs, and returns them as `examples` does."""
        lines, *others = super().read_files(source, reference)
        pairs = parse_lines(parse, lines, "example")
        labels = [
            [_number(label, f"{reference}, line {n}") for n, label in enumerate(column, 1)]
            for column in others
        ]
        return [pairs, *labels]

    def measure(self, pipeline, inputs, references) -> dict[str, Any]:
        """Returns `spearman`, 0 if all labels are equal."""
        return {"spearman": _metrics(pipeline.answer(inputs), inputs, references)["spearman"]}

    def evaluate(self, pipeline, columns) -> dict[str, Any]:
        """Scores pairs and compares the scores with the labels.

        Args:
            pipeline: A `Reranker`.
            columns: List of pairs of query and passage, and the list of their labels, floats.

        Returns:
            The metrics of `pair_metrics`; `pairs`, their number; `truncated`, the number of pairs
            that were truncated; and `seconds`.

        Raises:
            ValueError: If there are no pairs.
        """
        pairs, labels = columns
        if not pairs:
            raise ValueError("There must be at least one pair of texts to score. Received: none.")
        begin = time.monotonic()
        results = pipeline.answer(pairs)
        seconds = round(time.monotonic() - begin, 3)
        truncated = sum(result.truncated for result in results)
        metrics = _metrics(results, pairs, labels)
        return {**metrics, "pairs": len(pairs), "truncated": truncated, "seconds": seconds}

    def check(self, settings) -> None:
        """Refuses subword sampling, which does not know rows of two texts."""
        for name, fixed in self.fixed.items():
            value = getattr(settings.training, name)
            if value != fixed:
                raise ValueError(f"`training.{name}` must be 0 for {self.name}. Received: {value}.")


def _metrics(results, pairs, labels):
    queries = [query for query, _ in pairs]
    scores = [result.value for result in results]
    probabilities = [result.probability for result in results]
    return {"spearman": 0.0, **pair_metrics(queries, scores, probabilities, labels)}


def _number(label, place):
    """Returns a label as a float; it may be a number already.

    Raises:
        ValueError: If it is not a number; the error begins with `place`.
    """
    if isinstance(label, bytes):
        label = label.decode("utf-8", "replace")
    value = parse_number(label.strip(SPACES)) if isinstance(label, str) else float(label)
    if value is None:
        raise ValueError(f"{place}: the label must be a number. Received: {label!r}.")
    return value
