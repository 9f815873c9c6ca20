"""The parts of an attention that a runtime may compute in a form of its own."""

import dataclasses
import typing

from keras import ops


def similarity(query, key):
    """Returns `Q K^T`, `[B, H, T, S]`, of queries `[B, H, T, K]` and keys `[B, H, S, K]`."""
    return ops.einsum("BHTK,BHSK->BHTS", query, key)


def write(cache, position, index):
    """Returns `cache` `[B, H, R, K]` with `position` `[B, H, 1, K]` at `index`.

    By a select, as TensorFlow's core has no kernel on the CPU that updates a slice.
    """
    here = ops.equal(ops.arange(cache.shape[2], dtype="int32"), index)  # [R]
    return ops.where(ops.reshape(here, (1, 1, -1, 1)), position, cache)


@dataclasses.dataclass(frozen=True)
class Kernels:
    """Functions with which an attention computes; an attribute `kernels` of the layer.

    Another runtime than TensorFlow does the same faster in another form: an export gives the layers
    of its own copy of a model other kernels, see `export/litert/kernels.py`.

    Args:
        similarity: See the function `similarity`.
        write: See the function `write`.
    """

    similarity: typing.Callable = similarity
    write: typing.Callable = write
