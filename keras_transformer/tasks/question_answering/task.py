"""The task of extractive question answering: the part of a passage that answers a question."""

import time

from keras_transformer.config.span_predictor import SpanPredictorConfig
from keras_transformer.tasks.question_answering.figures import answer_figures
from keras_transformer.tasks.task import LOSS, Figure, Task
from keras_transformer.text.lines import parse_lines


class QuestionAnsweringTask(Task):
    """Questions about passages, by a `SpanPredictor`.

    An example is a question, a tab and a passage. What belongs to it are the right answers with
    tabs between them; in data to train on, the byte of the passage at which the first one begins
    and a tab stand before them.
    """

    name = "question_answering"
    columns = ("questions and passages", "answers")
    config_class = SpanPredictorConfig
    figures = {
        "loss": LOSS,
        "accuracy": Figure("accuracy of places", higher_is_better=True, drawn=False),
        "exact_match": Figure("exact match", higher_is_better=True, of_texts=True),
        "f1": Figure("F1 of words", higher_is_better=True, of_texts=True),
    }
    unit = "examples"

    def pipeline_class(self):  # noqa: D102
        from keras_transformer.tasks.question_answering.answerer import QuestionAnswerer

        return QuestionAnswerer

    def references(self, values):
        """Returns the answers without the place of the first."""
        return [value.partition("\t")[2] for value in values]

    def measure(self, pipeline, inputs, references):
        """Returns `exact_match` and `f1`."""
        answers = [result.text for result in pipeline.answer(parse_lines(parse, inputs, "example"))]
        return answer_figures(answers, references)

    def evaluate(self, pipeline, columns):
        """Answers questions and compares the answers with the right ones.

        Args:
            pipeline: A `QuestionAnswerer`.
            columns: List of questions and passages, and list of their right answers, several with
                tabs between them.

        Returns:
            Dictionary of `exact_match` and `f1`, from 0 to 100, as SQuAD defines them; `questions`,
            their number; `truncated`, how many questions were longer than the model's limit; and
            `seconds`.
        """
        examples = parse_lines(parse, columns[0], "example")
        if not examples:
            raise ValueError("There must be at least one question to answer. Received: none.")
        begin = time.perf_counter()
        results = pipeline.answer(examples)
        seconds = time.perf_counter() - begin
        return {
            **answer_figures([result.text for result in results], columns[1]),
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


def parse(line):
    """Returns the question and the passage of a line, a pair.

    Raises:
        ValueError: If there is no tab: what the line must be.
    """
    question, tab, passage = line.partition("\t")
    if not tab:
        raise ValueError("must be a question, a tab and a passage. Received: no tab.")
    return question, passage
