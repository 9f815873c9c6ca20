"""The task of vectors of images."""

import time
from typing import Any

from keras_transformer.tasks.image_embedding.config import ImageEmbedderConfig
from keras_transformer.tasks.task import LOSS, Survey, Task


class ImageEmbeddingTask(Task):
    """Vectors of images by an `ImageEmbedder`, trained on images with labels.

    Images with one label get similar vectors. The labels of other images may be new ones.
    """

    name = "image_embedding"
    columns = ("image", "label")
    sources = ("images", "digits")
    training = "keras_transformer.training.tasks.image_embedding:ImageEmbeddingTraining"
    config_class = ImageEmbedderConfig
    metrics = {"loss": LOSS}
    unit = "examples"
    unused = (
        "vocabulary",
        "training.subword_sampling",
        "training.validate_sentences",
        "training.r_drop",
        "training.label_smoothing",
    )

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.image_embedding.pipeline import ImageEmbeddingPipeline

        return ImageEmbeddingPipeline

    def check(self, settings) -> None:
        """Refuses gradient accumulation, whose batches do not see each other's images."""
        if settings.training.accumulate > 1:
            raise ValueError(
                "`training.accumulate` must be 1 for image_embedding: every image is compared with "
                "those of its own batch. "
                f"Received: training.accumulate={settings.training.accumulate}."
            )

    def survey(self, rows, metadata=None) -> Survey:
        """Returns height, width and channels of an image; see `count_labels` for the labels."""
        from keras_transformer.tasks.class_labels import count_labels, described_labels

        counts = count_labels(label for _, label in rows.as_numpy_iterator())
        height, width, channels = rows.element_spec[0].shape
        fields = {"image_height": height, "image_width": width, "channels": channels}
        labels, *warnings = described_labels(counts)
        return Survey(fields, (f"Images of {height} x {width} pixels; {labels}", *warnings))

    def evaluate(self, pipeline, columns) -> dict[str, Any]:
        """Classifies each image by the labels of the images that are most similar to it.

        Args:
            pipeline: An `ImageEmbeddingPipeline`.
            columns: List of images or of paths of their files, and list of their labels.

        Returns:
            Dictionary of `recall_at_1`, the share of images whose nearest other image has their
            label; `neighbor_accuracy`, that of images whose label has most votes of the 20 nearest
            others, see `NearestNeighbors`; both from 0 to 100; `images`, their number; and
            `seconds`.

        Raises:
            ValueError: If there are fewer than two images.
        """
        images, labels = columns
        begin = time.monotonic()
        vectors = pipeline.embed(list(images))
        seconds = round(time.monotonic() - begin, 3)
        return {
            "recall_at_1": _agreement(vectors, labels, neighbors=1),
            "neighbor_accuracy": _agreement(vectors, labels),
            "images": len(labels),
            "seconds": seconds,
        }


def _agreement(vectors, labels, **options):
    """Returns the share of vectors with the label that the others give them, from 0 to 100."""
    from keras_transformer.tasks.image_embedding.neighbors import NearestNeighbors

    results = NearestNeighbors(vectors, labels, **options).classify_examples()
    correct = sum(r.label == label for r, label in zip(results, labels, strict=True))
    return 100 * correct / len(labels)
