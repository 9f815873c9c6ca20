"""The base of pipelines of models that read images."""

import os
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_transformer.tasks.images.codec import encoded_image
from keras_transformer.tasks.images.files import ImageSize
from keras_transformer.tasks.single_pass.pipeline import SinglePass
from keras_transformer.tensors import Tensor


class ImagePass(SinglePass):
    """A trained model in use that answers in one pass about an image.

    Args:
        model: The model, or a list of several; see `Pipeline`.

    Attributes:
        size: The `ImageSize` that images must have.
    """

    request = ("images",)

    def __init__(self, model: keras.Model | Sequence[keras.Model]):
        super().__init__(model)
        self.size = ImageSize.of(self.model.config)
        self.codec = self.make_codec()
        self.check_models()

    def make_codec(self) -> Any:
        """Returns the codec for images of the model's `size`."""
        return self.codec_class(self.size)

    def check_inputs(self, inputs: Tensor) -> list[bytes]:  # noqa: D102
        images = enumerate(super().check_inputs(inputs), start=1)
        return [self._encoded(image, number) for number, image in images]

    def answer_prepared(self, inputs: list[bytes]) -> list:  # noqa: D102
        return super().answer_batch(inputs)

    def answer_batch(self, images: Tensor) -> list:
        """Returns a `Result` for each image of a list, computed as one batch."""
        return super().answer_batch([self._encoded(image) for image in images])

    def _encoded(self, image, number=1):
        """Returns an image as the bytes of a file, after checking it like `read`."""
        encoded = encoded_image(image) if isinstance(image, (str, os.PathLike, bytes)) else None
        if encoded is None:  # an array
            self.read(image, number)
            return encoded_image(image)
        self.size.check(encoded, f"image {number}" if isinstance(image, bytes) else image)
        return encoded

    def read(self, image: Tensor, number: int = 1) -> np.ndarray:
        """Returns the pixels that the model gets: an array `[H, W, C]`, uint8, of its size.

        Args:
            image: A path, the bytes of a file, or an array.
            number: Number of the image, counted from 1, for errors.
        """
        if isinstance(image, (str, os.PathLike)):
            return self.size.read(image)
        if isinstance(image, bytes):
            return self.size.from_bytes(image, f"image {number}")
        return self.size.from_array(image, f"image {number}")
