"""Functions of TensorFlow: their operations, one after the other, into the nodes of a `Graph`."""

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.function_def_to_graph import function_def_to_graph

from keras_transformer.export.errors import ExportError
from keras_transformer.export.onnx.functions.folding import folded
from keras_transformer.export.onnx.functions.loops import branch, loop
from keras_transformer.export.onnx.functions.needed import needed_by
from keras_transformer.export.onnx.graph.builder import Graph
from keras_transformer.export.onnx.graph.values import Symbol, Value, constant
from keras_transformer.export.onnx.operators import OPERATORS

CALLS = ("PartitionedCall", "StatefulPartitionedCall")
LOOPS = ("While", "StatelessWhile")
BRANCHES = ("If", "StatelessIf")


class Functions:
    """The functions of a graph of TensorFlow, for which it can be called in an ONNX graph.

    Args:
        graph_def: The `GraphDef`, with its library of functions.
    """

    def __init__(self, graph_def):
        self._library = {
            function.signature.name: function for function in graph_def.library.function
        }
        self._graphs = {}
        # The functions that other functions call must be known to TensorFlow's graphs.
        self._home = tf.Graph()
        with self._home.as_default():
            tf.graph_util.import_graph_def(
                tf.compat.v1.GraphDef(library=graph_def.library, versions=graph_def.versions)
            )

    def graph(self, name: str, shapes: list) -> Any:
        """Returns the graph of a function.

        Args:
            name: Its name.
            shapes: List of the static shapes of its arguments, `tf.TensorShape`s.
        """
        key = name, str(shapes)
        if key not in self._graphs:
            with self._home.as_default():
                self._graphs[key] = function_def_to_graph(
                    self._library[name], input_shapes=list(shapes)
                )
        return self._graphs[key]

    def call(self, graph: Graph, function: Any, inputs: list, outputs: list) -> list[Value]:
        """Adds the nodes that compute some tensors of a function.

        Args:
            graph: The `Graph`.
            function: The graph of the function, with `inputs`.
            inputs: List of `Value`s for its inputs; `None` for inputs that are not read.
            outputs: List of the tensors to compute.
        """
        values = {}
        for tensor, value in zip(function.inputs, inputs, strict=True):
            if value is not None:
                values[tensor.name] = value
        needed = needed_by(outputs, values)
        for op, names in needed.items():
            for tensor, value in zip(
                op.outputs, self._results(graph, op, names, values), strict=False
            ):
                if value is not None:
                    values[tensor.name] = _refined(value, tensor.shape)
        return [values[tensor.name] for tensor in outputs]

    def _results(self, graph, op, names, values):
        """Returns the outputs of an operation, `None` for those that are not needed."""
        if op.type == "Const":
            return [constant(tf.make_ndarray(op.get_attr("value")))]
        inputs = [values.get(tensor.name) for tensor in op.inputs]
        if op.type in LOOPS:
            return loop(self, graph, op, inputs, [tensor.name in names for tensor in op.outputs])
        if op.type in BRANCHES:
            return branch(self, graph, op, inputs)
        if op.type in CALLS:
            shapes = [tensor.shape for tensor in op.inputs]
            function = self.graph(op.get_attr("f").name, shapes)
            return self.call(graph, function, inputs, function.outputs)
        known = folded(op, inputs)
        if known is not None:
            return known
        if op.type not in OPERATORS:
            raise ExportError(
                f"ONNX: there is no conversion of the operator {op.type} ({op.name})."
            )
        try:
            results = OPERATORS[op.type](graph, op, inputs)
        except Exception as error:  # of any class, such as for an axis that is not a constant
            raise ExportError(
                f"ONNX: the operator {op.type} ({op.name}) cannot be converted with such inputs: "
                f"{error}"
            ) from error
        return results if isinstance(results, list) else [results]


def _refined(value, shape):
    """Returns a value with the sizes that TensorFlow knows."""
    if shape.rank == value.rank:
        for axis, size in enumerate(shape.as_list()):
            if size is not None and isinstance(value.dims[axis], Symbol):
                value.dims = (*value.dims[:axis], size, *value.dims[axis + 1 :])
    if value.elements is None or value.is_constant:
        return value
    if not all(isinstance(element, int) for element in value.elements):
        return value
    return constant(np.array(value.elements, value.dtype).reshape(value.dims))
