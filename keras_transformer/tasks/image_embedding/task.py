"""The task of vectors of images."""

import collections
import time
from typing import Any

import numpy as np

from keras_transformer.tasks.image_embedding.config import ImageEmbedderConfig
from keras_transformer.tasks.task import LOSS, Metric, Survey, Task

PER_LABEL = 5  # images of a label that a validation classifies by each other


class ImageEmbeddingTask(Task):
    """Vectors of images by an `ImageEmbedder`, trained on images with labels.

    Images with one label get similar vectors. The labels of other images may be new ones.
    """

    name = "image_embedding"
    columns = ("image", "label")
    sources = ("images", "digits")
    training = "keras_transformer.training.tasks.image_embedding:ImageEmbeddingTraining"
    config_class = ImageEmbedderConfig
    metrics = {
        "loss": LOSS,
        "recall_at_1": Metric("recall at 1", higher_is_better=True, of_answers=True),
        "neighbor_accuracy": Metric(
            "accuracy of 20 neighbors", higher_is_better=True, of_answers=True, drawn=False
        ),
    }
    unit = "examples"
    unused = (
        "vocabulary",
        "training.subword_sampling",
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

    def validation_rows(self, rows, limit) -> Any:
        """Returns images of many labels, several of each: see `mixed`."""
        import tensorflow as tf

        labels = [label.decode() for label in rows.map(lambda _, label: label).as_numpy_iterator()]
        numbers = mixed(labels, limit)
        if len({labels[number] for number in numbers}) < 2:
            raise ValueError(
                "A validation classifies images by each other, which takes at least two labels "
                "with two images each: `training.validate_sentences` must be 0 or at least 4, and "
                "the validation split must have such labels. Received: "
                f"training.validate_sentences={limit}, {len(labels)} validation images of "
                f"{len({*labels})} labels."
            )
        chosen = np.isin(np.arange(len(labels)), numbers)
        rows = rows.enumerate().filter(lambda number, _: tf.gather(chosen, number))
        return rows.map(lambda _, row: row)

    def measure(self, pipeline, inputs, references) -> dict[str, float]:
        """Returns `recall_at_1` and `neighbor_accuracy`; see `evaluate`."""
        vectors = pipeline.embed(list(inputs))
        return {
            "recall_at_1": _agreement(vectors, references, neighbors=1),
            "neighbor_accuracy": _agreement(vectors, references),
        }

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
        results = self.measure(pipeline, images, labels)
        seconds = round(time.monotonic() - begin, 3)
        return {**results, "images": len(labels), "seconds": seconds}


def _agreement(vectors, labels, **options):
    """Returns the share of vectors with the label that the others give them, from 0 to 100."""
    from keras_transformer.tasks.image_embedding.neighbors import NearestNeighbors

    results = NearestNeighbors(vectors, labels, **options).classify_examples()
    correct = sum(r.label == label for r, label in zip(results, labels, strict=True))
    return 100 * correct / len(labels)


def mixed(labels, limit) -> list[int]:
    """Returns the numbers of images of many labels, with several images of each label.

    Folders of images are read label after label, so that the first images would all have the same
    label. If the limit allows fewer than `PER_LABEL` images of each label, some labels at equal
    distances in alphabetical order are chosen, at least two. Labels with one image, which no other
    image can name, are left out unless the limit allows all images.

    Args:
        labels: List of the label of each image.
        limit: Maximum number of images.

    Returns:
        Numbers in ascending order, counted from 0.
    """
    if len(labels) <= limit:
        return [*range(len(labels))]
    if limit < 4:  # two labels with two images each
        return []
    counts = collections.Counter(labels)
    names = sorted(name for name, count in counts.items() if count > 1)
    count = min(len(names), max(2, limit // PER_LABEL))
    chosen = {names[number * len(names) // count] for number in range(count)}
    ranks, images = dict.fromkeys(chosen, 0), []
    for number, label in enumerate(labels):
        if label in chosen:
            images.append((ranks[label], label, number))
            ranks[label] += 1
    return sorted(number for _, _, number in sorted(images)[:limit])
