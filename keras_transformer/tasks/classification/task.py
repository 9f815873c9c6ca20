"""The task of text classification: a text to one of a few labels."""

from keras_transformer.config import ClassifierConfig
from keras_transformer.tasks.class_labels import count_labels, described_labels, evaluate_labels
from keras_transformer.tasks.task import LOSS, Metric, Survey, Task


class ClassificationTask(Task):
    """Texts and their labels, by a `TextClassifier`; the labels are those of the training data."""

    name = "classification"
    columns = ("text", "label")
    texts = {"source": ("text",)}
    training = "keras_transformer.training.tasks.classification:ClassificationTraining"
    config_class = ClassifierConfig
    metrics = {"loss": LOSS, "accuracy": Metric("accuracy", higher_is_better=True)}
    unit = "examples"

    def pipeline_class(self):  # noqa: D102
        from keras_transformer.tasks.classification.classifier import Classifier

        return Classifier

    def survey(self, rows, facts=None):
        """Returns the labels, in the order of their numbers if they are numbers, and their counts,
        in which a header, exchanged columns or a typing error is seen.
        """
        batches = rows.batch(1024).as_numpy_iterator()
        counts = count_labels(label for _, batch in batches for label in batch)
        return Survey({"labels": tuple(counts)}, described_labels(counts))

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
