"""Orientation of photographs: cameras store how to turn an image instead of turning it.

The tag is part of the Exif data of a JPEG or PNG file, which are a TIFF header and a directory.
TensorFlow does not read it when it decodes an image.

Reference: CIPA DC-008, "Exchangeable image file format for digital still cameras: Exif Version
    2.32", sections 4.5 and 4.6; ISO/IEC 10918-1, annex B; PNG Specification (Third Edition),
    section 11.3.4.5.
"""

import typing

import numpy as np
import tensorflow as tf

from keras_transformer.tensors import Tensor

UPRIGHT = 1
TAG = 0x0112
SIZES = {1: 1, 3: 2, 4: 4}  # bytes of a value, by its type: BYTE, SHORT and LONG
ENTRY = 12  # bytes of an entry of a directory
MOST = 10_000  # segments or chunks before the Exif data; with more, an image is taken as upright
EXIF, CHUNK = b"Exif\0\0", b"eXIf"  # what Exif data in JPEG and in PNG begin with
APP1, START_OF_SCAN, END_OF_IMAGE = 0xE1, 0xDA, 0xD9  # markers of segments of JPEG
ALONE = (0x01, *range(0xD0, 0xD9))  # markers without a length
MIRRORED, UPSIDE_DOWN, TRANSPOSED = (2, 3, 6, 7), (3, 4, 7, 8), (5, 6, 7, 8)


def upright(image, encoded) -> Tensor:
    """Returns an image turned and mirrored according to the Exif data of its file, in a graph.

    The result is that of `exif_transpose` in Pillow, except that an orientation is ignored if only
    the XMP data or a text chunk of a PNG file contain it.

    Args:
        image: The decoded image, `[H, W, C]`.
        encoded: The bytes of the file, a scalar string.
    """
    found = orientation(encoded)

    def among(numbers):
        return tf.reduce_any(tf.equal(found, tf.constant(numbers, tf.int64)))

    image = tf.cond(among(TRANSPOSED), lambda: tf.transpose(image, [1, 0, 2]), lambda: image)
    image = tf.cond(among(MIRRORED), lambda: tf.reverse(image, [1]), lambda: image)
    return tf.cond(among(UPSIDE_DOWN), lambda: tf.reverse(image, [0]), lambda: image)


def orientation(encoded) -> Tensor:
    """Returns the orientation of an image, 1 to 8, int64; 1, upright, if the file has none."""
    content = _Bytes.of(encoded)
    nowhere = tf.constant(0, tf.int64)

    def header_in(kind, name):
        # A loop takes a millisecond for each of the many chunks of a large image without Exif data.
        return tf.cond(content.contain(name), lambda: kind(content), lambda: nowhere)

    header = tf.cond(
        content.equal(0, b"\x89PNG"),
        lambda: header_in(_header_in_png, CHUNK),
        lambda: header_in(_header_in_jpeg, EXIF),
    )
    return tf.cond(
        header > 0, lambda: _in_directory(content, header), lambda: tf.constant(UPRIGHT, tf.int64)
    )


class _Bytes(typing.NamedTuple):
    """Bytes as numbers; before their beginning and beyond their end they are 0."""

    values: typing.Any  # int64 [1 + N + 6], with a 0 at the beginning and several at the end
    size: typing.Any  # N, int64

    @classmethod
    def of(cls, encoded):
        values = tf.cast(tf.io.decode_raw(encoded, tf.uint8), tf.int64)
        return cls(tf.pad(values, [[1, len(EXIF)]]), tf.size(values, tf.int64))

    def bytes(self, place, size):
        """Returns the `size` bytes that begin at each place, on a new last axis."""
        here = tf.cast(place, tf.int64)[..., None] + np.arange(1, size + 1)
        return tf.gather(self.values, tf.clip_by_value(here, 0, self.size + 1))

    def number(self, place, size, little=False):
        """Returns the integer of the `size` bytes that begin at each place."""
        powers = 256 ** np.arange(size)
        powers = powers[::-1] if little is False else tf.where(little, powers, powers[::-1])
        return tf.reduce_sum(self.bytes(place, size) * powers, axis=-1)

    def equal(self, place, expected):
        """Returns whether bytes begin at a place."""
        return tf.reduce_all(tf.equal(self.bytes(place, len(expected)), [*expected]))

    def contain(self, expected):
        """Returns whether bytes occur anywhere."""
        count = tf.reshape(tf.maximum(self.size - len(expected) + 1, 0), [1])
        here = tf.fill(count, True)
        for place, value in enumerate(expected):
            part = tf.slice(self.values, np.array([1 + place]), count)
            here &= tf.equal(part, value)
        return tf.reduce_any(here)


def _header_in_jpeg(content):
    """Returns the place of the TIFF header in a JPEG file; 0 if it has none."""

    def is_exif(place):
        return content.equal(place, [0xFF, APP1]) & content.equal(place + 4, EXIF)

    def goes_on(place):
        marker = content.number(place + 1, 1)
        ends = tf.equal(marker, START_OF_SCAN) | tf.equal(marker, END_OF_IMAGE)
        inside = tf.equal(content.number(place, 1), 0xFF) & (place + 4 <= content.size)
        return inside & ~ends & ~is_exif(place)

    def next_place(place):
        marker, length = content.number(place + 1, 1), content.number(place + 2, 2)
        alone = tf.reduce_any(tf.equal(marker, tf.constant(ALONE, tf.int64)))
        length = tf.where(~alone, tf.maximum(length, 2), 0)  # goes on in damaged files, too
        return (place + tf.where(tf.not_equal(marker, 0xFF), 2 + length, 1),)

    (place,) = tf.while_loop(
        goes_on, next_place, (tf.constant(2, tf.int64),), maximum_iterations=MOST
    )
    return tf.where(is_exif(place), place + 4 + len(EXIF), 0)


def _header_in_png(content):
    """Returns the place of the TIFF header in a PNG file; 0 if it has none."""

    def goes_on(place):
        return (place + 8 <= content.size) & ~content.equal(place + 4, CHUNK)

    def next_place(place):
        return (place + 12 + content.number(place, 4),)  # length, type, data and check sum

    (place,) = tf.while_loop(
        goes_on, next_place, (tf.constant(8, tf.int64),), maximum_iterations=MOST
    )
    return tf.where(content.equal(place + 4, CHUNK), place + 8, 0)


def _in_directory(content, header):
    """Returns the orientation in the first directory after a TIFF header."""
    little = content.equal(header, b"II")
    valid = tf.equal(content.number(header + 2, 2, little), 42)
    place = header + content.number(header + 4, 4, little)
    count = tf.minimum(content.number(place, 2, little), (content.size - place) // ENTRY)
    entries = place + 2 + ENTRY * tf.range(tf.where(valid, tf.maximum(count, 0), 0))  # [E]
    tags, types = (content.number(entries + offset, 2, little) for offset in (0, 2))
    values = tf.zeros_like(entries)
    for number, size in SIZES.items():
        value = content.number(entries + 8, size, little)
        values = tf.where(tf.equal(types, number), value, values)
    known = tf.equal(tags, TAG) & (values >= 1) & (values <= 8)
    # At most one entry of a valid file has the tag.
    return tf.reduce_max(tf.concat([[UPRIGHT], tf.where(known, values, UPRIGHT)], axis=0))
