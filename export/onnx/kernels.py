"""Kernels of a search step made of the operations that are fastest in ONNX Runtime."""

import tensorflow as tf
from keras import ops

from keras_transformer.decoding.loop import EACH
from keras_transformer.layers.kernels import Kernels
from keras_transformer.tensors import Tensor


def append(cache: Tensor, position: Tensor, index: Tensor) -> Tensor:
    """Returns a cache `[B, G, P * N, K]` with one more position, `[B, G, N, K]`."""
    return ops.concatenate([cache, position], axis=2)


def all_written(length: int, index: Tensor) -> None:
    """Returns no mask: every position of the cache is written."""


def unchanged(recent: Tensor, count: int) -> list[Tensor]:
    """Returns a cache that `append` makes larger, with a size that TensorFlow does not know.

    The loop of a search accepts no tensor whose known size changes.
    """
    batch, groups, _, size = recent.shape
    return [tf.compat.v1.placeholder_with_default(recent, [batch, groups, None, size])]


KERNELS = Kernels(write=append, written=all_written, extend=unchanged, cache_stages=EACH)
