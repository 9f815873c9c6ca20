"""The task of text classification: a text to one of a few labels."""

import math
import statistics
import time

from keras_transformer.config import ClassifierConfig
from keras_transformer.tasks.task import LOSS, Figure, Task

SHOWN = 20  # labels
SPACES = " \t\n\v\f\r"  # around a label: those that `tf.strings.strip` removes


class ClassificationTask(Task):
    """Texts and their labels, by a `TextClassifier`; the labels are those of the training data."""

    name = "classification"
    columns = ("text", "label")
    config_class = ClassifierConfig
    figures = {"loss": LOSS, "accuracy": Figure("accuracy", higher_is_better=True)}
    unit = "examples"

    def pipeline_class(self):  # noqa: D102
        from keras_transformer.tasks.classifier import Classifier

        return Classifier

    def fields(self, rows):
        """Returns the labels, in the order of their numbers if they are numbers."""
        labels = {
            label.decode("utf-8", "replace").strip(SPACES)
            for _, batch in rows.batch(1024).as_numpy_iterator()
            for label in batch
        }
        if len(labels) < 2:
            raise ValueError(
                "the training data must have at least two different labels. "
                f"Received: {', '.join(sorted(labels)) or 'none'}."
            )
        return {"labels": tuple(sorted(labels, key=_order))}

    def describe(self, fields):
        """Returns the labels: a header or exchanged columns show there."""
        labels = fields["labels"]
        shown = ", ".join(map(repr, labels[:SHOWN])) + (", ..." if len(labels) > SHOWN else "")
        return f"{len(labels)} labels: {shown}."

    def evaluate(self, pipeline, columns):
        """Classifies texts and counts the right labels.

        Args:
            pipeline: A `Classifier`.
            columns: List of texts, and list of their labels.

        Returns:
            Dictionary of `accuracy`, from 0 to 100; `macro_f1`, from 0 to 100, the mean of the F1
            of each label that a text or an answer has, as scikit-learn computes it; `texts`, their
            number; `truncated`, how many were longer than the model's limit and were cut; and
            `seconds`.
        """
        texts, labels = columns[0], [label.strip(SPACES) for label in columns[1]]
        known = pipeline.labels
        for number, label in enumerate(labels, start=1):
            if label not in known:
                raise ValueError(
                    f"example {number}: the label must be one of {', '.join(known)}, which the "
                    f"training data have. Received: {label!r}."
                )
        if not labels:
            raise ValueError("There must be at least one text to classify. Received: none.")
        begin = time.perf_counter()
        results = pipeline.classify(texts)
        seconds = time.perf_counter() - begin
        pairs = [(result.label, label) for result, label in zip(results, labels, strict=True)]
        right = sum(ours == theirs for ours, theirs in pairs)
        return {
            "accuracy": 100 * right / len(pairs),
            "macro_f1": 100 * statistics.fmean(_f1(pairs, label) for label in set().union(*pairs)),
            "texts": len(pairs),
            "truncated": sum(result.truncated for result in results),
            "seconds": round(seconds, 3),
        }


def _order(label):
    """Numbers in their order, and other labels in that of their letters."""
    try:
        value = float(label)
    except ValueError:
        value = math.nan
    return (0, value, label) if math.isfinite(value) else (1, 0.0, label)


def _f1(pairs, label):
    """The harmonic mean of precision and recall of a label; 0 if it is never right."""
    right = sum(ours == theirs == label for ours, theirs in pairs)
    both = sum((ours == label) + (theirs == label) for ours, theirs in pairs)
    return 2 * right / both
