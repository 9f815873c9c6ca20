"""Models whose weights are stored in blocks of 32, for ONNX Runtime's own operators.

Its quantiser of such weights needs a further package, reads no matrices of `Gemm`, and stores a
table that is also the matrix of a product twice.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from keras_transformer.export.onnx.blocks import BLOCK, BYTES, OFFSETS, SYMMETRIC, Rounding
from keras_transformer.export.onnx.float16 import replace
from keras_transformer.export.onnx.packages import load_onnx
from keras_transformer.export.onnx.tables import is_any, store_rows_in_int8

DOMAIN, VERSION = "com.microsoft", 1  # of the operators `MatMulNBits` and `GatherBlockQuantized`
INTEGERS = 4  # `accuracy_level` of products whose other factor is rounded to 8 bits
SUMS = f"ones_of_blocks_of_{BLOCK}"  # matrices that add up the numbers of each block of a row


def in_int4(model, is_weight: Callable = is_any) -> Any:
    """Returns an `onnx.ModelProto` whose matrices and tables of weights have 4 bits.

    A block of 32 weights along the inner axis of a product has one scale. A product rounds its
    other factor to 8 bits, also in blocks, so that the rows of a batch do not affect each other. A
    table that is also the matrix of a product, such as tied embeddings, is stored once. Tables
    whose rows do not consist of whole blocks are stored in int8, with a scale for each row.

    Args:
        model: The `onnx.ModelProto` in float32, which is not changed.
        is_weight: Function that returns whether an array that is looked up is one of weights.
            Others, such as the sines of positions, keep float32.
    """
    return _stored(model, SYMMETRIC, SYMMETRIC, is_weight)


def in_int4_with_offsets(model, is_weight: Callable = is_any) -> Any:
    """Returns an `onnx.ModelProto` with matrices in 4 bits with offsets, and tables in 8 bits.

    As `in_int4`, except that a block of a matrix has an offset besides its scale. A product with it
    adds the sums of the blocks of the other factor, times the offsets. Tables, also those that are
    matrices of products, have a scale for each block.

    Args:
        model, is_weight: See `in_int4`.
    """
    return _stored(model, OFFSETS, BYTES, is_weight)


def in_int8_blocks(model, is_weight: Callable = is_any) -> Any:
    """Returns an `onnx.ModelProto` whose matrices and tables of weights have 8 bits.

    As `in_int4`, with a scale for each block.

    Args:
        model, is_weight: See `in_int4`.
    """
    return _stored(model, BYTES, BYTES, is_weight)


def _stored(model, products, tables, is_weight):
    """Returns a model with its weights in blocks, by the `Rounding`s of products and tables."""
    onnx = load_onnx()
    whole, model = model, onnx.ModelProto()
    model.CopyFrom(whole)
    matrices = _Matrices(model.graph, products, tables, is_weight)
    matrices.replace(model.graph)
    replace(model.graph.node, [*matrices.prepared, *model.graph.node])
    model.graph.initializer.extend(matrices.stored.values())
    store_rows_in_int8(model.graph, is_weight)
    model.opset_import.add(domain=DOMAIN, version=VERSION)
    return model


class _Matrices:
    """The matrices of weights of a graph, each of which is stored in blocks when it is first read.

    A matrix `[N, K]` is a table with N rows of K numbers, or the transpose of the matrix of a
    product with an inner axis of K numbers.

    Args:
        graph: The `GraphProto`.
        products, tables: The `Rounding`s of matrices, and of tables with whole blocks.
        is_weight: See `in_int4`.

    Attributes:
        stored: Dictionary of the new initialisers by name.
        prepared: Nodes that compute what products and look-ups read from the initialisers.
    """

    def __init__(self, graph, products: Rounding, tables: Rounding, is_weight):
        onnx = load_onnx()
        self._arrays = {
            weight.name: onnx.numpy_helper.to_array(weight)
            for weight in graph.initializer
            if weight.data_type == onnx.TensorProto.FLOAT and len(weight.dims) == 2
        }
        self._products, self._tables, self._is_weight = products, tables, is_weight
        self._looked_up: set[str] = set()
        self._note_look_ups(graph)
        self.stored, self.prepared = {}, []
        self._parts: dict[str, list] = {}  # names of codes, scales and offsets

    def _note_look_ups(self, graph):
        """Adds the names of the tables that are looked up in a graph and its subgraphs."""
        for node in graph.node:
            for attribute in node.attribute:
                self._note_look_ups(attribute.g)
            if node.op_type == "Gather" and node.input[0] in self._arrays:
                table = self._arrays[node.input[0]]
                if table.shape[1] % BLOCK == 0 and self._is_weight(table):
                    self._looked_up.add(node.input[0])

    def replace(self, graph):
        """Replaces the products and look-ups in a graph and its subgraphs."""
        nodes, sums = [], {}
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.g.node:
                    self.replace(attribute.g)
            nodes += self._replaced(node, sums)
        replace(graph.node, nodes)

    def _replaced(self, node, sums):
        """Returns the nodes to write instead of a node.

        Args:
            node: The node.
            sums: Dictionary from names of factors to the names of their sums in the same graph.
        """
        flags = {attribute.name: attribute.i for attribute in node.attribute}
        if node.op_type == "Gather" and not flags.get("axis"):
            return self._look_up(node)
        if node.op_type == "MatMul":
            return self._product(node, False, sums)
        if node.op_type == "Gemm" and flags == {"transA": 0, "transB": 1}:
            return self._product(node, True, sums)
        return [node]

    def _look_up(self, node):
        """Returns the look-up of rows of a table, or the node if it cannot be replaced."""
        name, places = node.input
        if name not in self._looked_up:
            return [node]
        codes, scales, _ = self._stored(name, True, self._tables)
        bits = self._tables.bits
        table = self._as_table(codes, self._arrays[name].shape, bits)
        fixed = {"gather_axis": 0, "quantize_axis": 1, "bits": bits}
        return [self._node("GatherBlockQuantized", [table, places, scales], node.output, **fixed)]

    def _product(self, node, of_rows, sums):
        """Returns the nodes of the product with a matrix, or the node if it cannot be replaced."""
        other, name = node.input
        matrix = self._arrays.get(name)
        if matrix is None or min(matrix.shape) < BLOCK:
            return [node]
        rounding = self._tables if of_rows and name in self._looked_up else self._products
        count, inner = matrix.shape if of_rows else matrix.shape[::-1]
        fixed = {"K": inner, "N": count, "accuracy_level": INTEGERS, "bits": rounding.bits}
        codes, scales, offsets = self._stored(name, of_rows, rounding)
        if offsets is None:
            return [self._node("MatMulNBits", [other, codes, scales], node.output, **fixed)]
        make, (output,) = load_onnx().helper.make_node, node.output
        scaled, shift = f"{output}_scaled", f"{output}_shift"
        nodes = []
        if other not in sums:
            sums[other] = f"{other}_sums"
            nodes.append(make("MatMul", [other, self._ones(inner)], [sums[other]]))
        return [
            *nodes,
            self._node("MatMulNBits", [other, codes, scales], [scaled], **fixed),
            make("MatMul", [sums[other], offsets], [shift]),
            make("Add", [scaled, shift], [output]),
        ]

    def _node(self, kind, inputs, outputs, **attributes):
        make = load_onnx().helper.make_node
        return make(kind, inputs, outputs, domain=DOMAIN, block_size=BLOCK, **attributes)

    def _stored(self, name, of_rows, rounding):
        """Returns names of codes `[N, blocks, ...]`, scales `[N, blocks]` and offsets, or `None`.

        Offsets are the matrix of a product, `[blocks, N]`.

        Args:
            name: Name of the matrix.
            of_rows: Whether blocks are parts of its rows. Otherwise they are parts of its columns.
            rounding: The `Rounding`.
        """
        key = f"{name}_{'rows' if of_rows else 'columns'}"
        if key not in self._parts:
            array = self._arrays[name]
            codes, scales, offsets = rounding.blocks(array if of_rows else array.T)
            self._parts[key] = [
                self._store(f"{key}_codes", codes),
                self._store(f"{key}_scales", scales),
                None if offsets is None else self._store(f"{key}_offsets", offsets.T),
            ]
        return self._parts[key]

    def _ones(self, inner):
        """Returns the name of the matrix `[K, blocks]` that adds up the numbers of each block."""
        name = f"{SUMS}_{inner}"
        if name not in self.stored:
            blocks = np.arange(-(-inner // BLOCK))
            self._store(name, (np.arange(inner)[:, None] // BLOCK == blocks).astype(np.int8))
        return f"{name}_cast"

    def _store(self, name, array):
        """Returns the name of a new initialiser, or of its cast if it is not for codes."""
        onnx = load_onnx()
        self.stored[name] = onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        if array.dtype in (np.uint8, np.float32):
            return name
        cast = f"{name}_cast"
        self.prepared.append(
            onnx.helper.make_node("Cast", [name], [cast], to=onnx.TensorProto.FLOAT)
        )
        return cast

    def _as_table(self, codes, shape, bits):
        """Returns the name of codes in the shape of a table, `[N, K * bits / 8]`."""
        onnx, name = load_onnx(), f"{codes}_of_table"
        size = f"{name}_shape"
        if size not in self.stored:
            sizes = np.array([shape[0], shape[1] * bits // 8])
            self.stored[size] = onnx.numpy_helper.from_array(sizes, size)
            self.prepared.append(onnx.helper.make_node("Reshape", [codes, size], [name]))
        return name
