"""The task of arithmetic: an expression of binary numbers, and its value."""

import time
from typing import Any

from keras_transformer.tasks.arithmetic.config import CalculatorConfig
from keras_transformer.tasks.arithmetic.metrics import metrics_by_digits, value_metrics
from keras_transformer.tasks.task import LOSS, Metric, Task


class ArithmeticTask(Task):
    """Sums and products of binary numbers by a `Calculator`: a Neural GPU or a Transformer."""

    name = "arithmetic"
    columns = ("expression", "value")
    sources = ("arithmetic",)
    training = "keras_transformer.training.tasks.arithmetic:ArithmeticTraining"
    config_class = CalculatorConfig
    metrics = {
        "loss": LOSS,
        "accuracy": Metric("accuracy of digits", higher_is_better=True, drawn=False),
        "exact_match": Metric("exact match", higher_is_better=True),
    }
    unit = "digits"
    unused = (
        "vocabulary",
        "training.subword_sampling",
        "training.validate_sentences",
        "training.r_drop",
    )

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.arithmetic.pipeline import CalculatorPipeline

        return CalculatorPipeline

    def evaluate(self, pipeline, columns) -> dict[str, Any]:
        """Calculates expressions and compares the values with the correct ones.

        Args:
            pipeline: A `CalculatorPipeline`, or an opened export.
            columns: List of expressions, and list of their values, binary numbers.

        Returns:
            Dictionary of `exact_match` and `digit_errors`, see `value_metrics`; `by_digits`, see
            `metrics_by_digits`; `expressions`, their number; and `seconds`.
        """
        from keras_transformer.tasks.arithmetic.symbols import digits_in

        expressions, references = columns
        if not expressions:
            raise ValueError("There must be at least one expression to evaluate. Received: none.")
        references = [checked_value(*pair) for pair in enumerate(references, start=1)]
        begin = time.perf_counter()
        results = pipeline.answer(expressions)
        seconds = time.perf_counter() - begin
        values = [result.value for result in results]
        lengths = [len(result.probabilities) for result in results]
        digits = [digits_in(expression) for expression in expressions]
        return {
            **value_metrics(values, references, lengths),
            "by_digits": metrics_by_digits(values, references, lengths, digits),
            "expressions": len(expressions),
            "seconds": round(seconds, 3),
        }


def checked_value(number, value) -> str:
    """Returns a value without white space around it.

    Raises:
        ValueError: If it is not a binary number; the error names its number, counted from 1.
    """
    text = value.strip()
    if not text or {*text} - {*"01"}:
        raise ValueError(f"value {number} must be a binary number. Received: {value!r}.")
    return text
