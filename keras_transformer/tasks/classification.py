"""The task of text classification: a text to one of a few labels."""

import statistics
import time

from keras_transformer.config import ClassifierConfig
from keras_transformer.tasks.task import LOSS, Figure, Task
from keras_transformer.text.numbers import parse_number

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

    def fields(self, rows, facts=None):
        """Returns the labels, in the order of their numbers if they are numbers."""
        batches = rows.batch(1024).as_numpy_iterator()
        return {"labels": ordered_labels(label for _, batch in batches for label in batch)}

    def describe(self, fields):
        """Returns the labels: a header or exchanged columns show there."""
        return shown_labels(fields["labels"])

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
        figures, results = evaluate_labels(pipeline, *columns, noun="text")
        return {
            "accuracy": figures["accuracy"],
            "macro_f1": figures["macro_f1"],
            "texts": len(results),
            "truncated": sum(result.truncated for result in results),
            "seconds": figures["seconds"],
        }


def ordered_labels(labels):
    """Returns the different labels of the training data, in the order of their numbers if they are
    numbers.

    Args:
        labels: Iterable of bytes.

    Raises:
        ValueError: If there are fewer than two.
    """
    different = {label.decode("utf-8", "replace").strip(SPACES) for label in labels}
    if len(different) < 2:
        raise ValueError(
            "the training data must have at least two different labels. "
            f"Received: {', '.join(sorted(different)) or 'none'}."
        )
    return tuple(sorted(different, key=_order))


def shown_labels(labels):
    """Returns the sentence that names the labels, or the first of them."""
    shown = ", ".join(map(repr, labels[:SHOWN])) + (", ..." if len(labels) > SHOWN else "")
    return f"{len(labels)} labels: {shown}."


def evaluate_labels(pipeline, inputs, labels, noun):
    """Classifies inputs and counts the right labels.

    Args:
        pipeline: What has `labels` and `classify`.
        inputs: List of what it classifies.
        labels: List of the right labels.
        noun: What an input is, for an error.

    Returns:
        Dictionary of `accuracy`, `macro_f1` and `seconds`, and the list of what `classify`
        returned.
    """
    labels, known = [label.strip(SPACES) for label in labels], pipeline.labels
    for number, label in enumerate(labels, start=1):
        if label not in known:
            raise ValueError(
                f"example {number}: the label must be one of {', '.join(known)}, which the "
                f"training data have. Received: {label!r}."
            )
    if not labels:
        raise ValueError(f"There must be at least one {noun} to classify. Received: none.")
    begin = time.perf_counter()
    results = pipeline.classify(inputs)
    seconds = time.perf_counter() - begin
    pairs = [(result.label, label) for result, label in zip(results, labels, strict=True)]
    right = sum(ours == theirs for ours, theirs in pairs)
    figures = {
        "accuracy": 100 * right / len(pairs),
        "macro_f1": 100 * statistics.fmean(_f1(pairs, label) for label in set().union(*pairs)),
        "seconds": round(seconds, 3),
    }
    return figures, results


def _order(label):
    """Numbers in their order, and other labels in that of their letters."""
    value = parse_number(label)
    return (1, 0.0, label) if value is None else (0, value, label)


def _f1(pairs, label):
    """The harmonic mean of precision and recall of a label; 0 if it is never right."""
    right = sum(ours == theirs == label for ours, theirs in pairs)
    both = sum((ours == label) + (theirs == label) for ours, theirs in pairs)
    return 2 * right / both
