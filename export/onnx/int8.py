"""Weights in int8 by ONNX Runtime's own quantiser."""

import logging
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

from keras_transformer.export.onnx.packages import load_onnx
from keras_transformer.export.onnx.tables import is_any, read_by_node, store_rows_in_int8

OPERATORS = ["MatMul"]


def in_int8(model, is_weight: Callable = is_any) -> Any:
    """Returns an `onnx.ModelProto` whose matrices of weights are in int8, with their scales.

    Every column of a matrix has its own scale, and so has every row of a table. A product with
    weights rounds its other factor to 8 bits when it is computed and multiplies integers. Weights
    have 7 bits (`reduce_range`), so that processors without VNNI add pairs of products in 16 bits
    without overflow and compute the same numbers. Those of a table have 8.

    Args:
        model: The `onnx.ModelProto` in float32, which is not changed.
        is_weight: See `in_int4`.
    """
    onnx = load_onnx()
    from onnxruntime.quantization import QuantType, quantize_dynamic

    whole, model = model, onnx.ModelProto()
    model.CopyFrom(whole)
    store_rows_in_int8(model.graph, is_weight)
    root = logging.getLogger()
    level, before = logging.ERROR, root.level
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.onnx")
        root.setLevel(level)  # the quantiser recommends a preparation that other exporters need
        try:
            quantize_dynamic(
                model,
                path,
                op_types_to_quantize=OPERATORS,
                per_channel=True,
                reduce_range=True,
                weight_type=QuantType.QInt8,
                extra_options={"EnableSubgraph": True},
            )
        finally:
            root.setLevel(before)
        quantized = onnx.load(path)
    _sort(quantized.graph)
    return quantized


def _sort(graph):
    """Puts the nodes of a graph after those whose results they read, also inside of loops.

    The quantiser sorts them by their own inputs only.
    """
    made = {name: node for node in graph.node for name in node.output}
    done, ordered = set(), []

    def add(node):
        if id(node) in done:
            return
        done.add(id(node))
        for name in read_by_node(node):
            if name in made:
                add(made[name])
        ordered.append(node)

    for node in graph.node:
        add(node)
    ordered = [node.__deepcopy__() for node in ordered]
    del graph.node[:]
    graph.node.extend(ordered)
