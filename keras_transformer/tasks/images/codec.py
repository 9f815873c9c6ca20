"""The base of codecs of models that read images."""

import base64
import os
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.images.files import (
    SUFFIXES,
    ImageSize,
    encode_png,
    read_bytes,
)
from keras_transformer.tasks.single_pass.codec import Codec
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tensors import Tensor

RULE = (
    "Each row: the pixels of an image, row by row, from 0 to 255; images of other sizes must be "
    "resized before."
)
PNG = b"\x89PNG"  # begins such files
PREPARED = "Each row: the pixels of a prepared image, row by row, from 0 to 255. {}"


class PixelCodec(Codec):
    """The codec of a model that reads `pixels`, `[B, height, width, channels]`.

    Args:
        size: The `ImageSize` that images must have.
    """

    example, suffixes = "image", SUFFIXES
    signature = "pixels"
    rule = RULE
    request_specs = {"images": tf.TensorSpec([None], tf.string, name="images")}

    def __init__(self, size):
        self.image_size = size
        if size.interpolation or size.center_crop:
            self.rule = PREPARED.format(size.steps)

    @classmethod
    def is_one(cls, examples) -> bool:
        """Returns whether `examples` is a path, the bytes of a file, or an array `[H, W, C]`."""
        return super().is_one(examples) or getattr(examples, "ndim", None) == 3

    @classmethod
    def check(cls, examples) -> list:  # noqa: D102
        if isinstance(examples, (str, bytes, os.PathLike)) or not hasattr(examples, "__iter__"):
            raise TypeError(f"`images` must be a list of images. Received: {examples!r}.")
        return list(examples)

    @classmethod
    def verify(cls, example) -> Any:  # noqa: D102
        if isinstance(example, (str, os.PathLike)):
            ImageSize().read(example)
        return example

    @staticmethod
    def size(example) -> int:  # noqa: D102
        return 0  # images have the same size and keep their order

    @staticmethod
    def shown(example) -> str:  # noqa: D102
        return str(example) if isinstance(example, (str, os.PathLike)) else "an image"

    @classmethod
    def request(cls, examples) -> dict[str, Tensor]:
        """Returns `images`, the bytes of PNG or JPEG files.

        Args:
            examples: List of paths, of bytes of files, or of arrays `[H, W, C]` of uint8.
        """
        encoded = [encoded_image(example) for example in examples]
        return {"images": tf.constant(encoded, tf.string, [len(encoded)])}

    def encode(self, images) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns `pixels`, float32 `[B, H, W, C]`."""
        size = self.image_size
        shape = size.height, size.width, size.channels
        if tf.executing_eagerly():  # so that an error names the image
            encoded = enumerate(images.numpy(), start=1)
            arrays = [size.from_bytes(content, f"image {number}") for number, content in encoded]
            pixels = np.reshape(arrays, (-1, *shape))
        else:
            spec = tf.TensorSpec(shape, tf.uint8)
            pixels = tf.map_fn(size.decode, images, fn_output_signature=spec)
        return {"pixels": tf.cast(pixels, tf.float32)}, {}

    def input_specs(self, rows=None, length=None) -> dict[str, tf.TensorSpec]:  # noqa: D102
        size = self.image_size
        shape = [rows, size.height, size.width, size.channels]
        return {"pixels": tf.TensorSpec(shape, tf.float32, name="pixels")}

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        return {"image": self.image_size.metadata(), "pixels": self.rule}

    @classmethod
    def from_metadata(cls, metadata, tokenizers) -> "PixelCodec":  # noqa: D102
        return cls(ImageSize.from_metadata(metadata["image"]))

    def guide_of(self, example, purpose, axes, notes) -> Guide:
        """Returns a `Guide` with the notes on images and pixels.

        Args:
            example: Image for the request.
            purpose: What the model does.
            axes: Dictionary from each output to its axes.
            notes: List of notes on the outputs.
        """
        size = self.image_size
        encoded = encoded_image(example)
        file = "image.png" if encoded.startswith(PNG) else "image.jpg"
        return Guide(
            purpose=purpose,
            request={"images": f'[{{"b64": "{base64.b64encode(encoded).decode()}"}}]'},
            axes={"pixels": "B, height, width, channels", **axes},
            notes=[
                "B: number of images in the request. `images` are the bytes of PNG or JPEG files, "
                f"in JSON as Base64; `pixels` are numbers from 0 to 255, {size.height} x "
                f"{size.width} x {size.channels} of an image.",
                *notes,
                size.steps,
            ],
            arguments={"images": f'tf.stack([tf.io.read_file("{file}")])'},
            files={file: encoded},
        )


def encoded_image(example) -> bytes:
    """Returns an image, a path, the bytes of a file or an array, as the bytes of a file."""
    if isinstance(example, bytes):
        return example
    if isinstance(example, (str, os.PathLike)):
        return read_bytes(example)
    return encode_png(np.asarray(example))
