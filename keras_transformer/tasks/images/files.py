"""Reading of image files, with checks and changes of their size."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.files import read_bytes
from keras_transformer.tasks.images.orientation import upright
from keras_transformer.tasks.images.resampling import resample
from keras_transformer.tensors import Tensor

SUFFIXES = (".png", ".jpg", ".jpeg")


@dataclasses.dataclass(frozen=True)
class ImageSize:
    """Required size of images, and the steps by which images of other sizes get it.

    Args:
        height, width: Size in pixels. `None`: any size.
        channels: 1 for grey or 3 for colour images; files are converted.
        resize, interpolation, resize_to, center_crop: Options of `PatchInput`. An image that does
            not have the required size after these steps is refused.
    """

    height: int | None = None
    width: int | None = None
    channels: int = 3
    resize: bool = False
    interpolation: str | None = None
    resize_to: tuple = ()
    center_crop: bool = False

    @classmethod
    def of(cls, config) -> "ImageSize":
        """Returns the `ImageSize` of an `ImageClassifierConfig`."""
        steps = (
            config.input.resize,
            config.input.interpolation,
            config.input.resize_to,
            config.input.center_crop,
        )
        return cls(*config.input.shape, *steps)

    @classmethod
    def from_metadata(cls, metadata) -> "ImageSize":
        """Returns the `ImageSize` from a result of `metadata`."""
        return cls(**{**metadata, "resize_to": tuple(metadata.get("resize_to", ()))})

    def metadata(self) -> dict[str, Any]:
        """Returns the plain values for the metadata of a file."""
        return {**dataclasses.asdict(self), "resize_to": list(self.resize_to)}

    @property
    def steps(self) -> str:
        """Sentence about the size of images and the steps that change it."""
        size = f"{self.height} x {self.width} pixels"
        if not self.resize and not self.center_crop:
            return f"An image must have {size}; one of another size is an error."
        if not self.resize:
            return f"Of an image, the {size} at its centre are used; a smaller one is an error."
        name = self.interpolation or "bilinear"
        if not self.resize_to:
            return f"An image of another size is resized to {size} with a {name} filter."
        to = " x ".join(map(str, self.resize_to))
        target = f"{to} pixels" if len(self.resize_to) == 2 else f"a shorter edge of {to} pixels"
        return (
            f"An image is resized to {target} with a {name} filter, and the {size} at its centre "
            "are used."
        )

    def prepared(self, image) -> Tensor:
        """Returns an image `[H, W, C]`, uint8, after the steps that change its size, in a graph."""
        if self.resize and self.interpolation is None:
            return resized(image, self.height, self.width)
        if not self.resize and not self.center_crop:
            return image
        shape, size = (self.height, self.width), tf.shape(image, tf.int64)[:2]
        if not self.resize:
            return self._cropped(image, size)
        if self.resize_to:
            size = _resized_size(size, self.resize_to)
            begin = [(size[axis] - shape[axis]) // 2 for axis in (0, 1)]
        else:
            size, begin = shape, (0, 0)
        return resample(image, size, begin, shape, self.interpolation)

    def _cropped(self, image, size):
        """Returns the centre of an image; one that is too small remains as it is."""
        begin = tf.maximum((size - (self.height, self.width)) // 2, 0)  # [2]
        rows = image[begin[0] : begin[0] + self.height]
        return rows[:, begin[1] : begin[1] + self.width]

    def decode(self, encoded) -> Tensor:
        """Decodes the bytes of a file in a graph, and returns `[height, width, channels]`, uint8.

        TensorFlow raises an error for an image of a size that is refused.
        """
        image = tf.ensure_shape(self._pixels(encoded), (None, None, self.channels))
        if self.height is None:
            return image
        image = self.prepared(image)
        expected = (self.height, self.width, self.channels)
        fits = tf.reduce_all(tf.equal(tf.shape(image), expected))
        message = f"an image must have {self.height} x {self.width} pixels."
        with tf.control_dependencies([tf.debugging.Assert(fits, [message, tf.shape(image)])]):
            # From `ensure_shape`, TensorFlow would infer that the image fits, and skip the check.
            return tf.reshape(image, expected)

    def read(self, path) -> np.ndarray:
        """Returns the prepared image in a file, an array `[height, width, channels]`, uint8.

        Raises:
            ValueError: If the file cannot be read or has another size; the error is one line that
                names it.
        """
        return self.from_bytes(read_bytes(path), path)

    def from_bytes(self, encoded, name) -> np.ndarray:
        """Returns the prepared image in the bytes of a file; errors begin with `name`."""
        return self.from_array(self._decoded(encoded, name), name)

    def check(self, encoded, name) -> None:
        """Checks the bytes of a file; errors begin with `name`."""
        image = self._decoded(encoded, name)
        if not self.resize:  # otherwise images of every size are accepted
            self.from_array(image, name)

    def _decoded(self, encoded, name):
        try:
            pixels = self._pixels(encoded).numpy()
        except tf.errors.OpError:
            pixels = None
        if pixels is None or pixels.ndim != 3:  # WebP has an axis of frames
            raise ValueError(f"{name}: is not a readable PNG or JPEG image.")
        return pixels

    def _pixels(self, encoded):
        """Decodes the bytes of a file, and turns the image upright."""
        return upright(self._stored_pixels(encoded), encoded)

    def _stored_pixels(self, encoded):
        """Decodes the bytes of a file; with an `interpolation`, to the pixels of Pillow."""
        if self.interpolation is None:
            return tf.io.decode_image(encoded, self.channels, tf.uint8, expand_animations=False)
        # TensorFlow's conversion to grey differs: it reads the luminance in a JPEG file.
        channels = 3 if self.channels == 1 else self.channels
        # Despite its name, it also decodes PNG. The default for JPEG is a faster transform.
        pixels = tf.io.decode_jpeg(encoded, channels, dct_method="INTEGER_ACCURATE")
        return grey(pixels) if self.channels == 1 else pixels

    def from_array(self, image, name) -> np.ndarray:
        """Returns a prepared image from an array; errors begin with `name`.

        Raises:
            ValueError: If the size or the dtype is wrong.
        """
        image = np.asarray(image)
        if image.dtype != np.uint8:
            raise ValueError(
                f"{name}: must be an array of uint8, from 0 to 255. Received: {image.dtype}."
            )
        if image.ndim == 3 and image.shape[-1] == self.channels and image.size:
            image = np.asarray(self.prepared(image))
        expected = (self.height, self.width, self.channels)
        if self.height is not None and image.shape != expected:
            wanted, received = (" x ".join(map(str, shape)) for shape in (expected, image.shape))
            raise ValueError(
                f"{name}: must have height x width x channels of {wanted}. Received: {received}."
            )
        return image


def encode_png(image) -> bytes:
    """Returns an array `[H, W, C]`, uint8, as the bytes of a PNG file."""
    return tf.io.encode_png(image).numpy()


def resized(image, height, width) -> Tensor:
    """Resizes an image `[H, W, C]`, uint8, with TensorFlow's bilinear filter."""
    values = tf.image.resize(image, (height, width), antialias=True)
    return tf.cast(tf.clip_by_value(tf.round(values), 0.0, 255.0), tf.uint8)


def grey(image) -> Tensor:
    """Returns an image `[H, W, 3]`, uint8, as Pillow's mode `L`, `[H, W, 1]`.

    Reference: ITU-R BT.601, in fixed-point arithmetic with 16 bits as in Pillow.
    """
    levels = tf.cast(image, tf.int32) * (19_595, 38_470, 7_471)  # they sum to 2^16
    total = tf.reduce_sum(levels, axis=-1, keepdims=True) + (1 << 15)
    return tf.cast(tf.bitwise.right_shift(total, 16), tf.uint8)


def _resized_size(size, resize_to):
    """Returns height and width of the resized image: see `PatchInput.resize_to`."""
    if len(resize_to) == 2:
        return tf.constant(resize_to, tf.int64)
    return size * resize_to[0] // tf.reduce_min(size)
