"""The task of image classification."""

from typing import Any

from keras_transformer.tasks.class_labels import count_labels, described_labels, evaluate_labels
from keras_transformer.tasks.image_classification.config import ImageClassifierConfig
from keras_transformer.tasks.task import LOSS, Metric, Survey, Task


class ImageClassificationTask(Task):
    """Classification of images by an `ImageClassifier`; labels and size come from the data."""

    name = "image_classification"
    columns = ("image", "label")
    sources = ("images", "digits")
    training = (
        "keras_transformer.training.tasks.image_classification.training:ImageClassificationTraining"
    )
    config_class = ImageClassifierConfig
    metrics = {"loss": LOSS, "accuracy": Metric("accuracy", higher_is_better=True)}
    unit = "examples"
    unused = ("vocabulary", "training.subword_sampling", "training.validate_sentences")

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.image_classification.pipeline import (
            ImageClassificationPipeline,
        )

        return ImageClassificationPipeline

    def survey(self, rows, metadata=None) -> Survey:
        """Returns the labels, and the height, width and channels of the images.

        Labels are the names of folders; see `count_labels`.
        """
        counts = count_labels(label for _, label in rows.as_numpy_iterator())
        height, width, channels = rows.element_spec[0].shape
        fields = {
            "labels": tuple(counts),
            "image_height": height,
            "image_width": width,
            "channels": channels,
        }
        labels, *warnings = described_labels(counts)
        return Survey(fields, (f"Images of {height} x {width} pixels; {labels}", *warnings))

    def evaluate(self, pipeline, columns) -> dict[str, Any]:
        """Classifies images and compares the predicted labels with the correct ones.

        Args:
            pipeline: An `ImageClassificationPipeline`.
            columns: List of images or of paths of their files, and list of their labels.

        Returns:
            Dictionary of `accuracy` and `macro_f1`, see `evaluate_labels`; `images`, their number;
            and `seconds`.
        """
        metrics, results = evaluate_labels(pipeline, *columns, noun="image")
        seconds = metrics.pop("seconds")
        return {**metrics, "images": len(results), "seconds": seconds}
