"""Nodes of an ONNX graph and of the graphs of its loops and branches."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from keras_transformer.export.onnx.graph.values import Symbol, Value, constant, same_shape

INT64 = np.dtype("int64")
TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "float64": TensorProto.DOUBLE,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int32": TensorProto.INT32,
    "uint32": TensorProto.UINT32,
    "int64": TensorProto.INT64,
    "uint64": TensorProto.UINT64,
    "bool": TensorProto.BOOL,
}


class Graph:
    """A graph of nodes.

    A node is placed in the outermost graph in which its inputs exist: what does not change in a
    loop is computed before it. Equal nodes are written once.

    Args:
        outer: The graph of the node whose body it is. `None`: it is the model's own.
        is_branch: Whether it is computed under a condition. Its nodes then stay in it, because they
            may be valid only under this condition.
    """

    def __init__(self, outer: Graph | None = None, is_branch: bool = False):
        self.outer, self.is_branch = outer, is_branch
        self.depth = 0 if outer is None else outer.depth + 1
        self.nodes: list = []
        self._known: dict = {}
        root = self if outer is None else outer.root
        self.root: Graph = root
        if root is self:
            self.weights: dict = {}  # initialisers by name
            self._contents: dict = {}  # names of initialisers by content
            self._numbers = itertools.count()

    def new_name(self, kind: str) -> str:
        """Returns a name that no other tensor of the model has."""
        return f"{kind.lower()}_{next(self.root._numbers)}"

    def input(self, name: str, dtype: Any, dims: tuple) -> Value:
        """Returns an input of this graph; sizes of `None` are not known."""
        return self._result(name, dtype, dims)

    def add(
        self,
        kind: str,
        inputs: list,
        dtype: Any,
        dims: tuple,
        elements: list | None = None,
        **attributes: Any,
    ) -> Value:
        """Adds a node with one output and returns the output.

        Args:
            kind: Name of the ONNX operator.
            inputs: List of `Value`s, arrays or `None`.
            dtype: Dtype of the output.
            dims: Shape of the output; sizes of `None` are not known.
            elements: See `Value`.
            **attributes: Attributes of the node. Those of `None` are left out.
        """
        (output,) = self.add_several(kind, inputs, [(dtype, dims)], **attributes)
        if elements is not None and output.elements is None:
            output.elements = elements
        return output

    def add_several(self, kind, inputs, outputs, **attributes) -> list[Value]:
        """Adds a node and returns its outputs, given as pairs of dtype and shape; see `add`."""
        values = [
            value if value is None or isinstance(value, Value) else constant(value)
            for value in inputs
        ]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        graph = self._owner([value for value in values if value is not None])
        names = ["" if value is None else self.name_of(value) for value in values]
        key = (kind, *names, len(outputs), repr(sorted(attributes.items())))
        return graph._add(kind, names, values, outputs, attributes, key)

    def _owner(self, values):
        """Returns the outermost graph that may compute something from values."""
        depth = max((value.graph.depth for value in values if value.graph is not None), default=0)
        graph: Any = self
        while graph.depth > depth and not graph.is_branch:
            graph = graph.outer
        return graph

    def _add(self, kind, names, inputs, outputs, attributes, key):
        if key in self._known:
            return self._known[key]
        given = [self.new_name(kind) for _ in outputs]
        self.nodes.append(helper.make_node(kind, names, given, **attributes))
        results = [self._result(name, *output) for name, output in zip(given, outputs, strict=True)]
        for result in results:
            result.made = kind, inputs
        self._known[key] = results
        return results

    def _result(self, name, dtype, dims):
        value = Value(np.dtype(dtype), (), name, self)
        value.dims = tuple(
            Symbol(value, axis) if size is None else size for axis, size in enumerate(dims)
        )
        return value

    def name_of(self, value: Value) -> str:
        """Returns the name of a value; a constant becomes an initialiser of the model."""
        if value.name is None:
            value.name = self.root._initialiser(value.constant)
        return value.name

    def _initialiser(self, array):
        array = np.asarray(array, order="C")
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._contents:
            name = self._contents[key] = self.new_name("constant")
            self.weights[name] = numpy_helper.from_array(array, name)
        return self._contents[key]

    def cast(self, value: Value, dtype: Any) -> Value:
        """Returns a value in another dtype."""
        dtype = np.dtype(dtype)
        if value.dtype == dtype:
            return value
        if value.is_constant:
            return constant(value.constant.astype(dtype))
        elements = value.elements if dtype.name in ("int32", "int64") else None
        return self.add("Cast", [value], dtype, value.dims, elements, to=TYPES[dtype.name])

    def size(self, size: int | Symbol) -> Value:
        """Returns a size as a vector of one int64."""
        if isinstance(size, int):
            return constant([size], INT64)
        value, axis = size.value, size.axis
        return self.add("Shape", [value], INT64, (1,), [size], start=axis, end=axis + 1)

    def shape(self, sizes: list | tuple) -> Value:
        """Returns sizes, integers and `Symbol`s, as a vector of int64."""
        if all(isinstance(size, int) for size in sizes):
            return constant(list(sizes), INT64)
        parts = [self.size(size) for size in sizes]
        if len(parts) == 1:
            return parts[0]
        return self.add("Concat", parts, INT64, (len(parts),), list(sizes), axis=0)

    def reshape(self, value: Value, dims: tuple) -> Value:
        """Returns a value in a shape of integers and `Symbol`s."""
        if value.made is not None and value.made[0] == "Reshape":
            value = value.made[1][0]  # one reshape instead of two
        if same_shape(value.dims, dims):
            return value
        if value.is_constant and all(isinstance(size, int) for size in dims):
            return constant(value.constant.reshape(dims))
        if any(isinstance(size, int) and size == 0 for size in dims):  # there is nothing to read
            return self.add(
                "Expand", [constant(0, value.dtype), self.shape(dims)], value.dtype, dims
            )
        return self.add(
            "Reshape", [value, self._target(value.dims, dims)], value.dtype, dims, value.elements
        )

    def _target(self, before, dims):
        """Returns the second input of a Reshape, a constant if possible."""
        unknown = [axis for axis, size in enumerate(dims) if not isinstance(size, int)]
        copied = [
            axis for axis in unknown if axis < len(before) and before[axis] is dims[axis]
        ]  # a 0 copies the size of the same axis
        left = [axis for axis in unknown if axis not in copied]
        if len(left) > 1:
            return self.shape(dims)
        target = [
            0 if axis in copied else -1 if axis in left else dims[axis] for axis in range(len(dims))
        ]
        return constant(target, INT64)

    def unsqueeze(self, value: Value, axes: list[int]) -> Value:
        """Returns a value with axes of size 1 at the given places of the result."""
        if not axes:
            return value
        dims = list(value.dims)
        for axis in sorted(axes):
            dims.insert(axis, 1)
        if value.is_constant:
            return constant(value.constant.reshape(dims))
        places = constant(sorted(axes), INT64)
        return self.add("Unsqueeze", [value, places], value.dtype, tuple(dims), value.elements)

    def squeeze(self, value: Value, axes: list[int]) -> Value:
        """Returns a value without axes of size 1."""
        dims = tuple(size for axis, size in enumerate(value.dims) if axis not in axes)
        if value.is_constant:
            return constant(value.constant.reshape(dims))
        places = constant(sorted(axes), INT64)
        return self.add("Squeeze", [value, places], value.dtype, dims, value.elements)


def info(value: Value, names: list | None = None):
    """Returns the `ValueInfoProto` of a value.

    Args:
        value: The value.
        names: Names of the sizes that are not known. `None`: they have none.
    """
    names = names or [None] * value.rank
    sizes = [
        size if isinstance(size, int) else name
        for size, name in zip(value.dims, names, strict=True)
    ]
    return helper.make_tensor_value_info(value.name, TYPES[value.dtype.name], sizes)
