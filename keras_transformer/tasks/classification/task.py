"""The task of text classification."""

from typing import Any

from keras_transformer.tasks.class_labels import count_labels, described_labels, evaluate_labels
from keras_transformer.tasks.classification.config import ClassifierConfig
from keras_transformer.tasks.task import LOSS, Metric, Survey, Task


class ClassificationTask(Task):
    """Classification of texts by a `TextClassifier` into the labels of the training data."""

    name = "classification"
    columns = ("text", "label")
    texts = {"source": ("text",)}
    training = "keras_transformer.training.tasks.classification:ClassificationTraining"
    config_class = ClassifierConfig
    metrics = {"loss": LOSS, "accuracy": Metric("accuracy", higher_is_better=True)}
    unit = "examples"

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.classification.pipeline import TextClassificationPipeline

        return TextClassificationPipeline

    def survey(self, rows, metadata=None) -> Survey:
        """Returns the labels and sentences with their counts; see `count_labels`.

        The counts reveal header lines, swapped columns and typing errors.
        """
        batches = rows.batch(1024).as_numpy_iterator()
        counts = count_labels(label for _, batch in batches for label in batch)
        return Survey({"labels": tuple(counts)}, described_labels(counts))

    def evaluate(self, pipeline, columns) -> dict[str, Any]:
        """Classifies texts and compares the predicted labels with the correct ones.

        Args:
            pipeline: A `TextClassificationPipeline`.
            columns: List of texts, and list of their labels.

        Returns:
            Dictionary of `accuracy`, from 0 to 100; `macro_f1`, from 0 to 100, the mean F1 over all
            labels that occur in the references or the predictions, as in scikit-learn; `texts`,
            their number; `truncated`, the number of texts that were longer than the model's limit
            and were truncated; and `seconds`.
        """
        metrics, results = evaluate_labels(pipeline, *columns, noun="text")
        return {
            "accuracy": metrics["accuracy"],
            "macro_f1": metrics["macro_f1"],
            "texts": len(results),
            "truncated": sum(result.truncated for result in results),
            "seconds": metrics["seconds"],
        }
