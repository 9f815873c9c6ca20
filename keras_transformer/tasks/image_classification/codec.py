"""The codec of image classification."""

from typing import Any

from keras_transformer.tasks.images.codec import PixelCodec
from keras_transformer.tasks.images.files import ImageSize
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.labels import Classification, LabelCodec


class ImageCodec(PixelCodec, LabelCodec):
    """The codec of a model that classifies images.

    Args:
        size: See `PixelCodec`.
        labels: Names of the classes.
    """

    def __init__(self, size, labels):
        super().__init__(size)
        self.labels = tuple(labels)

    def answers(self, outputs, rest) -> dict[str, Any]:  # noqa: D102
        return self.named(outputs)

    @classmethod
    def results(cls, answers) -> list[Classification]:
        """Returns a `Classification` for each image."""
        columns = (answers[name] for name in ("label", "probability", "probabilities"))
        return [
            Classification(label.decode(), float(probability), False, row)
            for label, probability, row in zip(*columns, strict=True)
        ]

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        return {"labels": list(self.labels), **super().metadata()}

    @classmethod
    def from_metadata(cls, metadata, tokenizers) -> "ImageCodec":  # noqa: D102
        return cls(ImageSize.from_metadata(metadata["image"]), metadata["labels"])

    def guide(self, example) -> Guide:  # noqa: D102
        labels = ", ".join(f"`{label}`" for label in self.labels)
        return self.guide_of(
            example,
            purpose=f"Classifies images as one of the labels {labels}",
            axes={"probabilities": "B, C"},
            notes=[
                f"C: the {len(self.labels)} labels, in the order above. `label` is the most "
                "probable of them."
            ],
        )
