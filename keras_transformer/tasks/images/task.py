"""The task of image classification: an image to one of a few labels."""

from keras_transformer.config import ImageClassifierConfig
from keras_transformer.tasks.classification import evaluate_labels, ordered_labels, shown_labels
from keras_transformer.tasks.task import LOSS, Figure, Task


class ImageClassificationTask(Task):
    """Images and their labels, by an `ImageClassifier`; the data decide labels and sizes."""

    name = "image_classification"
    columns = ("image", "label")
    sources = ("images", "digits")
    reads_text = False
    config_class = ImageClassifierConfig
    figures = {"loss": LOSS, "accuracy": Figure("accuracy", higher_is_better=True)}
    unit = "examples"
    unused = ("vocabulary", "training.subword_sampling", "training.validate_sentences")

    def pipeline_class(self):  # noqa: D102
        from keras_transformer.tasks.images.recognizer import ImageRecognizer

        return ImageRecognizer

    def fields(self, rows, facts=None):
        """Returns the labels, as of texts, and height, width and channels of the images."""
        labels = ordered_labels(label for _, label in rows.as_numpy_iterator())
        height, width, channels = rows.element_spec[0].shape
        return {
            "labels": labels,
            "image_height": height,
            "image_width": width,
            "channels": channels,
        }

    def describe(self, fields):
        """Returns the labels, which are the names of folders, and the size of the images."""
        size = f"{fields['image_height']} x {fields['image_width']} pixels"
        return f"Images of {size}; {shown_labels(fields['labels'])}"

    def evaluate(self, pipeline, columns):
        """Classifies images and counts the right labels.

        Args:
            pipeline: An `ImageRecognizer`.
            columns: List of images or of paths of their files, and list of their labels.

        Returns:
            Dictionary of `accuracy` and `macro_f1`, as of texts; `images`, their number; and
            `seconds`.
        """
        figures, results = evaluate_labels(pipeline, *columns, noun="image")
        seconds = figures.pop("seconds")
        return {**figures, "images": len(results), "seconds": seconds}
