"""The task of classification with several labels."""

import time
from typing import Any

from keras_transformer.tasks.class_labels import count_labels, described_labels
from keras_transformer.tasks.multi_label_classification.config import MultiLabelClassifierConfig
from keras_transformer.tasks.multi_label_classification.metrics import as_matrix, label_metrics
from keras_transformer.tasks.task import LOSS, Metric, Survey, Task
from keras_transformer.text.lists import END, ListColumn, items_of

TRAINING = "keras_transformer.training.tasks.multi_label_classification.training"


class MultiLabelClassificationTask(Task):
    """Classification of texts by a `MultiLabelClassifier`: each has any number of labels."""

    name = "multi_label_classification"
    columns = ("text", ListColumn("labels"))
    texts = {"source": ("text",)}
    training = f"{TRAINING}:MultiLabelClassificationTraining"
    config_class = MultiLabelClassifierConfig
    metrics = {
        "loss": LOSS,
        "micro_f1": Metric("micro F1", higher_is_better=True),
        "macro_f1": Metric("macro F1", higher_is_better=True),
    }
    unit = "examples"
    unused = ("training.r_drop",)

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.multi_label_classification.pipeline import (
            MultiLabelClassificationPipeline,
        )

        return MultiLabelClassificationPipeline

    def survey(self, rows, metadata=None) -> Survey:
        """Returns the labels and sentences with their counts; see `count_labels`."""
        texts, none, labels = 0, 0, []
        for _, batch in rows.batch(1024).as_numpy_iterator():
            sets = [items_of(value.decode("utf-8", "replace")) for value in batch]
            texts, none = texts + len(sets), none + sum(not one for one in sets)
            labels += [label.encode() for one in sets for label in one]
        counts = count_labels(labels)
        shares = (
            f"{len(labels) / texts:.2f} labels per text on average; {none:,} of {texts:,} texts"
        )
        return Survey(
            {"labels": tuple(counts)}, (*described_labels(counts), f"{shares} have none.")
        )

    def examples(self, columns) -> list[list]:
        """Returns texts, and the tuple of the labels of each."""
        texts, labels = columns.values()
        return [texts, [items_of(value, END) for value in labels]]

    def evaluate(self, pipeline, columns) -> dict[str, Any]:
        """Classifies texts and compares the predicted labels with the correct ones.

        Args:
            pipeline: A `MultiLabelClassificationPipeline`.
            columns: List of texts, and list of their labels: tuples, or strings with the
                pipeline's separator between labels.

        Returns:
            The metrics of `label_metrics`; `texts`, the number of texts; `truncated`, the number of
            texts that were longer than the model's limit and were truncated; and `seconds`.

        Raises:
            ValueError: If there is no text, or a label is unknown.
        """
        texts, references = columns
        codec = pipeline.codec
        correct = as_matrix(codec.sets(references), codec.labels)
        if not texts:
            raise ValueError("There must be at least one text to classify. Received: none.")
        begin = time.perf_counter()
        results = pipeline.classify(texts)
        seconds = round(time.perf_counter() - begin, 3)
        predicted = as_matrix([result.labels for result in results], codec.labels)
        metrics = label_metrics(predicted, correct, codec.labels)
        per_label = metrics.pop("per_label")
        truncated = sum(result.truncated for result in results)
        counts = {"texts": len(texts), "truncated": truncated, "seconds": seconds}
        return {**metrics, **counts, "per_label": per_label}
