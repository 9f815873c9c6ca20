"""Weights in 4 bits, in blocks of 32 with a scale each, for ONNX Runtime's own operators.

Its quantiser of such weights needs a further package, reads no matrices of `Gemm`, and stores a
table that is also the matrix of a product twice.
"""

from typing import Any

import numpy as np

from keras_transformer.export.onnx.float16 import replace
from keras_transformer.export.onnx.packages import load_onnx
from keras_transformer.export.onnx.tables import store_rows_in_int8

DOMAIN, VERSION = "com.microsoft", 1  # of the operators `MatMulNBits` and `GatherBlockQuantized`
BLOCK = 32  # weights that share a scale
INTEGERS = 4  # `accuracy_level` of products whose other factor is rounded to 8 bits
LOWEST, HIGHEST = -8, 7  # codes, stored with 8 added
# Scales to choose from, in units of the one with which the number of largest magnitude is `LOWEST`.
TRIED = np.linspace(0.7, 1.15, 19, dtype=np.float32)


def in_int4(model) -> Any:
    """Returns an `onnx.ModelProto` whose matrices and tables of weights have 4 bits.

    A block of 32 weights along the inner axis of a product has one scale. A product rounds its
    other factor to 8 bits, also in blocks, so that the rows of a batch do not affect each other. A
    table that is also the matrix of a product, such as tied embeddings, is stored once. Tables
    whose rows do not consist of whole blocks are stored in int8, with a scale for each row.

    Args:
        model: The `onnx.ModelProto` in float32, which is not changed.
    """
    onnx = load_onnx()
    whole, model = model, onnx.ModelProto()
    model.CopyFrom(whole)
    matrices = _Matrices(model.graph)
    matrices.replace(model.graph)
    replace(model.graph.node, [*matrices.shapes, *model.graph.node])
    model.graph.initializer.extend(matrices.stored.values())
    store_rows_in_int8(model.graph)
    model.opset_import.add(domain=DOMAIN, version=VERSION)
    return model


class _Matrices:
    """The matrices of weights of a graph, each of which is stored in 4 bits when it is first read.

    A matrix `[N, K]` is a table with N rows of K numbers, or the transpose of the matrix of a
    product with an inner axis of K numbers.

    Attributes:
        stored: Dictionary of the new initialisers by name.
        shapes: Nodes that give codes the shape that products need.
    """

    def __init__(self, graph):
        onnx = load_onnx()
        self._arrays = {
            weight.name: onnx.numpy_helper.to_array(weight)
            for weight in graph.initializer
            if weight.data_type == onnx.TensorProto.FLOAT and len(weight.dims) == 2
        }
        self.stored, self.shapes = {}, []

    def replace(self, graph):
        """Replaces the products and look-ups in a graph and its subgraphs."""
        nodes = []
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.g.node:
                    self.replace(attribute.g)
            nodes.append(self._replaced(node))
        replace(graph.node, nodes)

    def _replaced(self, node):
        """Returns the node to write instead of a node."""
        flags = {attribute.name: attribute.i for attribute in node.attribute}
        if node.op_type == "Gather" and not flags.get("axis"):
            return self._look_up(node)
        if node.op_type == "MatMul":
            return self._product(node, of_rows=False)
        if node.op_type == "Gemm" and flags == {"transA": 0, "transB": 1}:
            return self._product(node, of_rows=True)
        return node

    def _look_up(self, node):
        """Returns the look-up of rows of a table, or the node if it cannot be replaced."""
        name, places = node.input
        table = self._arrays.get(name)
        if table is None or table.shape[1] % BLOCK:
            return node
        codes, scales = self._codes(name, of_rows=True)
        codes = self._as_table(codes, table.shape)
        fixed = {"gather_axis": 0, "quantize_axis": 1}
        return self._node("GatherBlockQuantized", [codes, places, scales], node, **fixed)

    def _product(self, node, of_rows):
        """Returns the product with a matrix, or the node if it cannot be replaced."""
        other, name = node.input
        matrix = self._arrays.get(name)
        if matrix is None or min(matrix.shape) < BLOCK:
            return node
        count, inner = matrix.shape if of_rows else matrix.shape[::-1]
        sizes = {"K": inner, "N": count, "accuracy_level": INTEGERS}
        return self._node("MatMulNBits", [other, *self._codes(name, of_rows)], node, **sizes)

    def _node(self, kind, inputs, node, **attributes):
        attributes |= {"bits": 4, "block_size": BLOCK}
        make = load_onnx().helper.make_node
        return make(kind, inputs, node.output, domain=DOMAIN, **attributes)

    def _codes(self, name, of_rows):
        """Returns the names of the codes `[N, blocks, 16]` and of the scales `[N, blocks]`.

        Args:
            name: Name of the matrix.
            of_rows: Whether blocks are parts of its rows. Otherwise they are parts of its columns.
        """
        names = [
            f"{name}_{'rows' if of_rows else 'columns'}_{part}" for part in ("codes", "scales")
        ]
        if names[0] not in self.stored:
            arrays = codes_and_scales(self._arrays[name] if of_rows else self._arrays[name].T)
            for part, array in zip(names, arrays, strict=True):
                self.stored[part] = load_onnx().numpy_helper.from_array(array, part)
        return names

    def _as_table(self, codes, shape):
        """Returns the name of codes in the shape of a table, `[N, K / 2]`."""
        onnx, name = load_onnx(), f"{codes}_of_table"
        size = f"{name}_shape"
        if size not in self.stored:
            sizes = np.array([shape[0], shape[1] // 2])
            self.stored[size] = onnx.numpy_helper.from_array(sizes, size)
            self.shapes.append(onnx.helper.make_node("Reshape", [codes, size], [name]))
        return name


def codes_and_scales(matrix) -> tuple[np.ndarray, np.ndarray]:
    """Returns a matrix in 4 bits, with the scale of smallest squared error for each block.

    Args:
        matrix: `[N, K]`, float32.

    Returns:
        Codes `[N, blocks, 16]`, uint8: two numbers, the first one in the lower half. Scales
        `[N, blocks]`, float32.
    """
    count, inner = matrix.shape
    blocks = np.pad(matrix, ((0, 0), (0, -inner % BLOCK))).reshape(count, -1, BLOCK)
    largest = np.abs(blocks).argmax(-1, keepdims=True)
    peaks = np.take_along_axis(blocks, largest, -1) / LOWEST  # [N, blocks, 1]
    peaks = np.where(peaks == 0, np.float32(1), peaks)
    codes, scales = np.zeros(blocks.shape, np.int8), np.zeros_like(peaks)
    lowest = np.full(peaks.shape, np.inf, np.float32)  # error so far
    for factor in TRIED:
        tried = peaks * factor
        rounded = np.clip(np.rint(blocks / tried), LOWEST, HIGHEST)
        errors = np.square(rounded * tried - blocks).sum(-1, keepdims=True)
        better = errors < lowest
        codes = np.where(better, rounded.astype(np.int8), codes)
        scales, lowest = np.where(better, tried, scales), np.where(better, errors, lowest)
    halves = (codes - LOWEST).astype(np.uint8)
    return halves[..., ::2] | halves[..., 1::2] << 4, scales[..., 0]
