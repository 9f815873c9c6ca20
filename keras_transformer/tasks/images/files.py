"""Reading of image files, with checks and changes of their size."""

import dataclasses
import pathlib

import numpy as np
import tensorflow as tf

from keras_transformer.tensors import Tensor

SUFFIXES = (".png", ".jpg", ".jpeg")


@dataclasses.dataclass(frozen=True)
class ImageSize:
    """Required size of images.

    Args:
        height, width: Size in pixels. `None`: any size.
        channels: 1 for grey or 3 for colour images; files are converted.
        resize: Whether images of other sizes are resized; otherwise they are refused.
    """

    height: int | None = None
    width: int | None = None
    channels: int = 3
    resize: bool = False

    @classmethod
    def of(cls, config) -> "ImageSize":
        """Returns the `ImageSize` of an `ImageClassifierConfig`."""
        return cls(*config.shape, config.resize)

    def decode(self, encoded) -> Tensor:
        """Decodes the bytes of a file in a graph, and returns `[height, width, channels]`, uint8.

        TensorFlow raises an error for an image of a size that is refused.
        """
        image = tf.io.decode_image(encoded, self.channels, tf.uint8, expand_animations=False)
        image = tf.ensure_shape(image, (None, None, self.channels))
        if self.height is None:
            return image
        if self.resize:
            image = resized(image, self.height, self.width)
        expected = (self.height, self.width, self.channels)
        fits = tf.reduce_all(tf.equal(tf.shape(image), expected))
        message = f"an image must have {self.height} x {self.width} pixels."
        with tf.control_dependencies([tf.debugging.Assert(fits, [message, tf.shape(image)])]):
            return tf.ensure_shape(image, expected)

    def read(self, path) -> np.ndarray:
        """Returns the image in a file, an array `[height, width, channels]`, uint8.

        Raises:
            ValueError: If the file cannot be read or has another size; the error is one line that
                names it.
        """
        return self.from_bytes(read_bytes(path), path)

    def from_bytes(self, encoded, name) -> np.ndarray:
        """Returns the image in the bytes of a file; errors begin with `name`."""
        try:
            image = tf.io.decode_image(encoded, self.channels, tf.uint8, expand_animations=False)
        except tf.errors.OpError:
            raise ValueError(f"{name}: is not a readable PNG or JPEG image.") from None
        if self.resize:
            image = resized(image, self.height, self.width)
        return self.checked(image.numpy(), name)

    def checked(self, image, name) -> np.ndarray:
        """Returns an image as an array after checking its size and dtype.

        Raises:
            ValueError: If the size or the dtype is wrong; the error begins with `name`.
        """
        image = np.asarray(image)
        expected = (self.height, self.width, self.channels)
        if self.height is not None and image.shape != expected:
            wanted, received = (" x ".join(map(str, shape)) for shape in (expected, image.shape))
            raise ValueError(
                f"{name}: must have height x width x channels of {wanted}. Received: {received}."
            )
        if image.dtype != np.uint8:
            raise ValueError(
                f"{name}: must be an array of uint8, from 0 to 255. Received: {image.dtype}."
            )
        return image


def read_bytes(path) -> bytes:
    """Returns the bytes of a file.

    Raises:
        ValueError: If the file cannot be read; the error is one line that names it.
    """
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}.") from None


def encode_png(image) -> bytes:
    """Returns an array `[H, W, C]`, uint8, as the bytes of a PNG file."""
    return tf.io.encode_png(image).numpy()


def resized(image, height, width) -> Tensor:
    """Resizes an image `[H, W, C]`, uint8."""
    values = tf.image.resize(image, (height, width), antialias=True)
    return tf.cast(tf.clip_by_value(tf.round(values), 0.0, 255.0), tf.uint8)
