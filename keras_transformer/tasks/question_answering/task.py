"""The task of extractive question answering: the part of a passage that answers a question."""

import time

import numpy as np

from keras_transformer.config import SpanPredictorConfig
from keras_transformer.tasks.question_answering.lines import parse
from keras_transformer.tasks.question_answering.metrics import answer_metrics
from keras_transformer.tasks.task import LOSS, Metric, Task
from keras_transformer.text.lines import parse_lines


class QuestionAnsweringTask(Task):
    """Questions about passages, by a `SpanPredictor`.

    The data have right answers for each question, and the byte of the passage at which the first of
    them begins. An input is a pair of strings, question and passage; what belongs to it is a list
    of right answers. In lines of text tabs separate them.
    """

    name = "question_answering"
    columns = ("question", "passage", "begin", "answers")
    file_columns = ("questions with passages", "answers")
    texts = {"source": ("question", "passage")}
    training = "keras_transformer.training.tasks.question_answering:QuestionAnsweringTraining"
    config_class = SpanPredictorConfig
    metrics = {
        "loss": LOSS,
        "accuracy": Metric("accuracy of places", higher_is_better=True, drawn=False),
        "exact_match": Metric("exact match", higher_is_better=True, of_texts=True),
        "f1": Metric("F1 of words", higher_is_better=True, of_texts=True),
    }
    unit = "examples"

    def pipeline_class(self):  # noqa: D102
        from keras_transformer.tasks.question_answering.answerer import QuestionAnswerer

        return QuestionAnswerer

    def examples(self, columns):
        """Returns pairs of question and passage, and for each the list of right answers."""
        answers = [[_decoded(a) for a in np.atleast_1d(values)] for values in columns["answers"]]
        return [list(zip(columns["question"], columns["passage"], strict=True)), answers]

    def read_files(self, source, reference=None):
        """Returns what `examples` returns, of lines with tabs."""
        lines, *others = super().read_files(source, reference)
        return [parse_lines(parse, lines, "example"), *([a.split("\t") for a in o] for o in others)]

    def measure(self, pipeline, inputs, references):
        """Returns `exact_match` and `f1`."""
        return answer_metrics([result.text for result in pipeline.answer(inputs)], references)

    def evaluate(self, pipeline, columns):
        """Answers questions and compares the answers with the right ones.

        Args:
            pipeline: A `QuestionAnswerer`.
            columns: List of pairs of question and passage, and for each a list of right answers.

        Returns:
            Dictionary of `exact_match` and `f1`, from 0 to 100, as SQuAD defines them; `questions`,
            their number; `truncated`, how many questions were longer than the model's limit; and
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

    def check(self, settings):
        """Refuses other pieces than ends are counted in, and losses of what cannot be an end."""
        for name in ("subword_sampling", "r_drop", "label_smoothing"):
            value = getattr(settings.training, name)
            if value:
                raise ValueError(f"`training.{name}` must be 0 for {self.name}. Received: {value}.")


def _decoded(value):
    return value.decode() if isinstance(value, bytes) else value
