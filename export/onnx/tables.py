"""Tables whose rows are looked up, such as embeddings, in int8 with one scale for each row."""

from collections.abc import Callable
from typing import Any

import numpy as np

from keras_transformer.export.onnx.packages import load_onnx

LARGEST = 127  # of a code
SMALLEST = 1e-30  # scale of a row of zeros


def is_any(array: np.ndarray) -> bool:
    """Returns `True`: any array that is looked up is one of weights."""
    return True


def store_rows_in_int8(graph: Any, is_weight: Callable[[np.ndarray], bool] = is_any) -> None:
    """Changes a graph so that the tables of its look-ups are in int8.

    ONNX Runtime's quantiser has one scale for a whole table, with which a model of random weights
    emitted 19 % of the tokens that it emits in float32, and 66 % with a scale for each row. A table
    that is also the matrix of a product is kept for this product.

    Args:
        graph: A `GraphProto`.
        is_weight: Function that returns whether an array that is looked up is one of weights.
            Others, such as the sines of positions, keep float32.
    """
    onnx = load_onnx()
    arrays = {
        weight.name: onnx.numpy_helper.to_array(weight)
        for weight in graph.initializer
        if weight.data_type == onnx.TensorProto.FLOAT and len(weight.dims) == 2
    }
    tables = {name: array for name, array in arrays.items() if is_weight(array)}
    stored: dict[str, None] = {}  # in order
    _replace(graph, tables, stored)
    for name in stored:
        for part, array in _codes_and_scales(tables[name]).items():
            weight = onnx.numpy_helper.from_array(array, f"{name}_{part}")
            graph.initializer.append(weight)
    read = set(read_by(graph))
    kept = [weight.__deepcopy__() for weight in graph.initializer if weight.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def read_by(graph: Any) -> list[str]:
    """Returns the names of all values that the nodes of a graph read, also inside of loops."""
    return [name for node in graph.node for name in read_by_node(node)]


def read_by_node(node: Any) -> list[str]:
    """Returns the names of the values that a node and its subgraphs read."""
    inner = [name for attribute in node.attribute for name in read_by(attribute.g)]
    return [*node.input, *inner]


def _replace(graph, tables, stored):
    """Replaces the look-ups in a graph and its subgraphs; adds the tables' names to `stored`."""
    nodes = []
    for node in graph.node:
        node = node.__deepcopy__()
        for attribute in node.attribute:
            if attribute.g.node:
                _replace(attribute.g, tables, stored)
        if _looks_up(node, tables):
            stored[node.input[0]] = None
            nodes += _look_up(*node.input, node.output[0])
        else:
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _looks_up(node, tables):
    """Returns whether a node looks up rows of one of the tables."""
    axes = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
    return node.op_type == "Gather" and node.input[0] in tables and not any(axes)


def _look_up(table, places, output):
    """Returns the nodes that look up rows of a table in int8."""
    onnx = load_onnx()
    codes, scales, numbers = (f"{output}_{part}" for part in ("codes", "scales", "numbers"))
    return [
        onnx.helper.make_node("Gather", [f"{table}_codes", places], [codes]),
        onnx.helper.make_node("Gather", [f"{table}_scales", places], [scales]),
        onnx.helper.make_node("Cast", [codes], [numbers], to=onnx.TensorProto.FLOAT),
        onnx.helper.make_node("Mul", [numbers, scales], [output]),
    ]


def _codes_and_scales(table):
    """Returns the codes `[V, D]` of a table, int8, and the scales of its rows `[V, 1]`."""
    scales = np.maximum(np.abs(table).max(1, keepdims=True), SMALLEST) / LARGEST
    return {"codes": np.rint(table / scales).astype(np.int8), "scales": scales.astype(np.float32)}
