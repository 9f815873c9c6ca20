"""Resizing of images with Pillow's filters, in a graph.

Pillow resizes one axis, rounds to 8 bits, and resizes the other one, in fixed-point arithmetic. The
functions here do the same, so that the pixels are equal. Each pixel of the result depends only on
its own place, so a part of the resized image is computed without the rest.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_transformer.tensors import Tensor

BITS = 22  # of the fraction of a weight; 8 bits of a pixel and 2 for sums above 1 make 32
NEAREST = "nearest"


class Filter(NamedTuple):
    """A filter, for distances in pixels of the smaller of both images.

    Attributes:
        support: Distance beyond which the weight is 0.
        weight: Function from distances, float64, to weights.
    """

    support: float
    weight: Callable


def _box(x):
    return tf.cast((x > -0.5) & (x <= 0.5), x.dtype)


def _triangle(x):
    return tf.maximum(1.0 - tf.abs(x), 0.0)


def _hamming(x):
    constant, factor = (float(np.float32(value)) for value in (0.54, 0.46))  # as in Pillow
    return _inside(1.0, x, _sinc(x) * (constant + factor * tf.cos(math.pi * x)))


def _cubic(x):
    """The cubic convolution of Keys (1981), with a = -0.5."""
    x = tf.abs(x)
    near, far = (1.5 * x - 2.5) * x * x + 1.0, -0.5 * (((x - 5.0) * x + 8.0) * x - 4.0)
    return tf.where(x < 1.0, near, _inside(2.0, x, far))


def _lanczos(x):
    return _inside(3.0, x, _sinc(x) * _sinc(x / 3.0))


def _sinc(x):
    one = tf.ones_like(x)
    angle = tf.where(x == 0.0, one, x) * math.pi
    return tf.where(x == 0.0, one, tf.sin(angle) / angle)


def _inside(limit, x, weights):
    """Returns the weights, and 0 where x is not below the limit."""
    return tf.where(tf.abs(x) < limit, weights, tf.zeros_like(x))


FILTERS = {
    "bilinear": Filter(1.0, _triangle),
    "bicubic": Filter(2.0, _cubic),
    "lanczos": Filter(3.0, _lanczos),
    "box": Filter(0.5, _box),
    "hamming": Filter(1.0, _hamming),
}


def resample(image: Tensor, size, begin, shape, interpolation: str) -> Tensor:
    """Returns a part of a resized image, uint8 `[*shape, C]`.

    Args:
        image: The image, uint8 `[H, W, C]`.
        size: Height and width of the resized image; integers or int64 scalars.
        begin: Row and column of the resized image at which the part begins.
        shape: Height and width of the part; it must be inside the resized image.
        interpolation: `"nearest"`, or a key of `FILTERS`.

    Reference: `Image.resize` of Pillow 13, without `reducing_gap`.
    """

    def resized(*axes):
        result = image
        for axis in axes:
            places = tf.cast(begin[axis], tf.int64), shape[axis]
            result = _resample_axis(result, axis, size[axis], *places, interpolation)
        return tf.ensure_shape(result, (*shape, image.shape[-1]))

    height, width = (tf.shape(image, tf.int64)[axis] - size[axis] for axis in (0, 1))  # decrease
    # Earlier versions of Pillow always resize rows first.
    columns_first = (height > 0) & (height > 2 * width)
    return tf.cond(columns_first, lambda: resized(0, 1), lambda: resized(1, 0))


def _resample_axis(image, axis, size, begin, count, interpolation):
    """Returns `count` places from `begin` on of an image whose axis is resized to `size`."""
    length = tf.shape(image, tf.int64)[axis]
    scale = tf.cast(length, tf.float64) / tf.cast(size, tf.float64)
    if interpolation == NEAREST:  # Pillow adds up the steps, with their rounding errors
        steps = tf.concat([[scale * 0.5], tf.fill([begin + count - 1], scale)], 0)
        places = tf.cast(tf.cumsum(steps)[begin:], tf.int64)
        return tf.gather(image, tf.minimum(places, length - 1), axis=axis)
    places = begin + tf.range(count, dtype=tf.int64)
    centers = (tf.cast(places, tf.float64) + 0.5) * scale  # [P]
    return _filtered(image, axis, FILTERS[interpolation], centers, scale, length)


def _filtered(image, axis, kernel, centers, scale, length):
    """Returns the image with weighted means around `centers` along one axis."""
    weights = _weights(kernel, centers, scale, length)
    rows = tf.transpose(image, (1, 0, 2)) if axis else image  # [length, other, C]
    other, channels = tf.shape(rows)[1], image.shape[-1]
    pixels = tf.cast(tf.reshape(rows, (length, -1)), tf.int32)
    sums = tf.sparse.sparse_dense_matmul(weights, pixels) + (1 << (BITS - 1))  # [P, other * C]
    values = tf.clip_by_value(tf.bitwise.right_shift(sums, BITS), 0, 255)
    rows = tf.reshape(tf.cast(values, tf.uint8), (centers.shape[0], other, channels))
    return tf.transpose(rows, (1, 0, 2)) if axis else rows


def _weights(kernel, centers, scale, length):
    """Returns the weights of the old pixels for each new one, sparse int32 `[P, length]`."""
    widening = tf.maximum(scale, 1.0)  # of the filter, where the image becomes smaller
    support = kernel.support * widening
    first = tf.cast(tf.maximum(centers - support + 0.5, 0.0), tf.int64)  # [P]
    end = tf.minimum(tf.cast(centers + support + 0.5, tf.int64), length)
    old = first[:, None] + tf.range(tf.reduce_max(end - first), dtype=tf.int64)  # [P, K]
    distances = (tf.cast(old, tf.float64) - centers[:, None] + 0.5) / widening
    weights = kernel.weight(distances) * tf.cast(old < end[:, None], tf.float64)
    weights /= tf.reduce_sum(weights, axis=1, keepdims=True)
    fixed = tf.sign(weights) * tf.floor(tf.abs(weights) * (1 << BITS) + 0.5)  # halves away from 0
    new = tf.broadcast_to(tf.range(tf.shape(old, tf.int64)[0])[:, None], tf.shape(old))
    # Places beyond the image have the weight 0; they are moved into it.
    indices = tf.stack([tf.reshape(new, [-1]), tf.reshape(tf.minimum(old, length - 1), [-1])], 1)
    values = tf.cast(tf.reshape(fixed, [-1]), tf.int32)
    return tf.SparseTensor(indices, values, tf.stack([tf.shape(old, tf.int64)[0], length]))
