"""The pipeline of vectors of images."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.tasks.image_embedding.model import ImageEmbedder
from keras_transformer.tasks.images.codec import PixelCodec
from keras_transformer.tasks.images.pipeline import ImagePass
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.vectors import Vector
from keras_transformer.tensors import Tensor


class ImageVector(Vector):
    """The vector of an image; see `Vector`. `truncated` is always `False`."""


class ImageVectorCodec(PixelCodec):
    """The codec of a model whose outputs are the vectors of images."""

    verb = "embed"
    nothing = {"vector": 0.0}
    max_score_loss = {"none": 0.0, "float16": 0.001, "int8": 0.02, "int4": 0.06}
    score_unit = "of cosine distance"

    def outputs(self, prediction) -> dict[str, Tensor]:
        """Returns `vector` `[B, D]`."""
        return {"vector": prediction}

    def answers(self, outputs, rest) -> dict[str, Any]:  # noqa: D102
        return outputs

    @classmethod
    def results(cls, answers) -> list[ImageVector]:
        """Returns an `ImageVector` for each image."""
        return [ImageVector(np.asarray(row, "float32"), False) for row in answers["vector"]]

    def guide(self, example) -> Guide:  # noqa: D102
        return self.guide_of(
            example,
            purpose="Represents images by vectors",
            axes={"vector": "B, D"},
            notes=["D: number of features of a vector."],
        )


class ImageEmbeddingPipeline(ImagePass):
    """A trained `ImageEmbedder` in use.

    Args:
        model: An `ImageEmbedder`.

    Raises:
        TypeError: If `model` is not an `ImageEmbedder`.

    Attributes:
        size: The `ImageSize` that images must have.

    Example:
        from keras_transformer.pipelines import ImageEmbeddingPipeline
        ImageEmbeddingPipeline.from_run("runs/dinov2").embed(["cat.png", "dog.jpg"]).shape
    """

    task = "image_embedding"
    model_class = ImageEmbedder
    output = "vector"
    codec_class = ImageVectorCodec

    def embed(self, images: Sequence, batch_size: int = 64) -> np.ndarray:
        """Returns the vectors of images, float32 `[images, D]`.

        Args:
            images: List of paths of PNG or JPEG files, of the bytes of such files, or of arrays
                `[H, W, C]` of uint8. All are resized and cropped as the configuration requires.
            batch_size: Number of images at a time.

        Raises:
            TypeError: If `images` is not a list.
            ValueError: If an image cannot be read or has another size; the error names it.
        """
        results = self.answer(self.codec.check(images), batch_size=batch_size)
        width = self.model.output_shape[-1]
        return np.array([result.values for result in results], "float32").reshape(-1, width)

    def difference(self, other: Any) -> str | None:
        """Returns why two embedders cannot form an ensemble: no two models have the same space."""
        return super().difference(other) or (
            "vectors of different models cannot be compared or averaged"
        )
