"""The task of extractive question answering."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.tasks.question_answering.config import SpanPredictorConfig
from keras_transformer.tasks.question_answering.lines import parse
from keras_transformer.tasks.question_answering.metrics import answer_metrics
from keras_transformer.tasks.task import LOSS, Metric, Task
from keras_transformer.text.lines import parse_lines


class QuestionAnsweringTask(Task):
    """Answers to questions about passages by a `SpanPredictor`.

    The data contain one or more correct answers to each question, and the byte offset of the first
    answer in the passage. An input is a pair of strings, question and passage; its reference is the
    list of correct answers. In lines of text, both are separated by tabs.
    """

    name = "question_answering"
    columns = ("question", "passage", "begin", "answers")
    file_columns = ("questions with passages", "answers")
    texts = {"source": ("question", "passage")}
    training = (
        "keras_transformer.training.tasks.question_answering.training:QuestionAnsweringTraining"
    )
    config_class = SpanPredictorConfig
    metrics = {
        "loss": LOSS,
        "accuracy": Metric("accuracy of positions", higher_is_better=True, drawn=False),
        "exact_match": Metric("exact match", higher_is_better=True, of_answers=True),
        "f1": Metric("F1 of words", higher_is_better=True, of_answers=True),
    }
    unit = "examples"
    fixed = dict.fromkeys(("subword_sampling", "r_drop", "label_smoothing"), 0.0)

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.question_answering.pipeline import QuestionAnswerer

        return QuestionAnswerer

    def examples(self, columns) -> list[list]:
        """Returns pairs of question and passage, and the list of correct answers to each."""
        answers = [[_decoded(a) for a in np.atleast_1d(values)] for values in columns["answers"]]
        return [list(zip(columns["question"], columns["passage"], strict=True)), answers]

    def read_files(self, source, reference=None) -> Sequence[list]:
        """Reads lines with tabs, and returns them as `examples` does."""
        lines, *others = super().read_files(source, reference)
        return [parse_lines(parse, lines, "example"), *([a.split("\t") for a in o] for o in others)]

    def measure(self, pipeline, inputs, references) -> dict[str, float]:
        """Returns `exact_match` and `f1`."""
        return answer_metrics([result.text for result in pipeline.answer(inputs)], references)

    def evaluate(self, pipeline, columns) -> dict[str, Any]:
        """Answers questions and compares the answers with the correct ones.

        Args:
            pipeline: A `QuestionAnswerer`.
            columns: List of pairs of question and passage, and the list of correct answers to each.

        Returns:
            Dictionary of `exact_match` and `f1`, from 0 to 100, as SQuAD defines them; `questions`,
            their number; `truncated`, the number of questions longer than the model's limit; and
            `seconds`.
        """
        examples, references = columns
        if not examples:
            raise ValueError("There must be at least one question to answer. Received: none.")
        begin = time.perf_counter()
        results = pipeline.answer(examples)
        seconds = time.perf_counter() - begin
        return {
            **answer_metrics([result.text for result in results], references),
            "questions": len(examples),
            "truncated": sum(result.truncated for result in results),
            "seconds": round(seconds, 3),
        }

    def check(self, settings) -> None:
        """Refuses settings that would move the ends of answers or have no loss for spans."""
        for name, fixed in self.fixed.items():
            value = getattr(settings.training, name)
            if value != fixed:
                raise ValueError(f"`training.{name}` must be 0 for {self.name}. Received: {value}.")


def _decoded(value):
    return value.decode() if isinstance(value, bytes) else value
