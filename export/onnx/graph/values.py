"""Values of a graph: what is known of a tensor before the graph runs."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

# Tensors of sizes, whose elements are followed one by one.
SIZES = ("int32", "int64")
MOST_ELEMENTS = 64


@dataclasses.dataclass(eq=False)
class Symbol:
    """A size that is known only when the graph runs: that of an axis of a tensor.

    Tensors share a symbol if the sizes of their axes are always equal.
    """

    value: Value
    axis: int


@dataclasses.dataclass(eq=False)
class Value:
    """A tensor.

    Args:
        dtype: Its dtype.
        dims: Its shape, a tuple of integers and `Symbol`s.
        name: Its name in the ONNX graph. `None`: a constant that no node has read yet.
        graph: The `Graph` that computes it. `None`: it is a constant.
        constant: Its content, an array, if it is a constant.
        made: The node that computes it: its operator and its inputs. `None`: it is an input.
        elements: Elements of a scalar or vector of integers, as far as they are known: a list of
            integers, `Symbol`s, and `None` for all others. `None`: they are not followed.
    """

    dtype: np.dtype
    dims: tuple
    name: str | None = None
    graph: Any = None
    constant: Any = None
    made: tuple | None = None
    elements: list | None = None

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.dims)

    @property
    def is_constant(self) -> bool:
        """`True` if its content is known."""
        return self.constant is not None


class Reserved(Value):
    """A list of tensors before the first of them is known, and with it their shape.

    Args:
        dtype: Dtype of the tensors.
        count: Number of the tensors, a scalar `Value`.
    """

    def __init__(self, dtype: Any, count: Value):
        super().__init__(np.dtype(dtype), ())
        self.count = count


def constant(array: Any, dtype: Any = None) -> Value:
    """Returns a constant."""
    array = np.asarray(array, dtype)
    elements = None
    if array.dtype.name in SIZES and array.ndim < 2 and array.size <= MOST_ELEMENTS:
        elements = [int(number) for number in array.reshape(-1)]
    return Value(array.dtype, array.shape, constant=array, elements=elements)


def same_size(one: Any, other: Any) -> bool:
    """Returns whether two sizes, integers or `Symbol`s, are known to be equal."""
    return one is other or (isinstance(one, int) and isinstance(other, int) and one == other)


def same_shape(one: tuple, other: tuple) -> bool:
    """Returns whether two shapes are known to be equal."""
    return len(one) == len(other) and all(map(same_size, one, other))


def broadcast(*shapes: tuple) -> tuple:
    """Returns the shape of the result of an elementwise operation; unknown sizes are `None`."""
    rank = max(map(len, shapes))
    columns = zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in shapes), strict=True)
    return tuple(_common(sizes) for sizes in columns)


def _common(sizes):
    known = [size for size in sizes if not (isinstance(size, int) and size == 1)]
    if not known:
        return 1
    for size in known:  # a number other than 1 decides
        if isinstance(size, int):
            return size
    return known[0] if all(size is known[0] for size in known) else None
