"""Constants that stand in for large weights while LiteRT's converter writes the graphs."""

import functools
import hashlib
import math
from collections.abc import Callable, Collection
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.export.litert.equal_numbers import complete_constants
from keras_transformer.export.litert.serialization import read_model, write_model
from keras_transformer.export.litert.stored_weights import (
    LargeWeight,
    Unrecognized,
    Uses,
    drop_unused_buffers,
)
from keras_transformer.layers.kernels import Kernels

QUANTIZATIONS = ("none", "int8")  # for which weights have stand-ins
SMALLEST = 2**14  # numbers in a weight that has a stand-in
TINY = np.float32(1e-6)  # the smallest factor by which weights may be multiplied
STAND_IN = "stand_in"  # begins the names of the constants
COMPUTED = {"BatchMatMulV2", "Conv2D", "GatherV2", "MatMul", "ResourceGather"}
STEP = 2.0**-14  # between the values of stand-ins, which are a little above 1


class StandIns:
    """Constants of equal numbers in place of the large tables and kernels of a model.

    The converter has several copies of every weight at a time, and frees none of those that it read
    from variables. Of a constant whose numbers are equal it stores one number. Every weight has
    another number, by which it is found in the converted model; there it replaces the constant, in
    the form in which the converter would have stored it. The converter also multiplies weights by
    constant factors, such as the scale of attention scores; such a product is found as well. What
    it would compute from weights and other constants, such as the state of a first token, cannot be
    replaced: see `note`.

    Args:
        model: The model, in float32.
        quantize: Quantisation of the file.
        kinds: Quantisations for which weights have stand-ins.
    """

    def __init__(self, model: keras.Model, quantize: str, kinds: Collection[str] = QUANTIZATIONS):
        self._quantize = quantize
        self._weights, self._codes, self._mapping, self._factors = {}, {}, [], {1.0}
        self._is_computed = False  # whether the converter would compute with stand-ins
        known = {}
        for variable, is_table in _large(model) if quantize in kinds else ():
            key = (_digest(variable), is_table)  # equal weights are stored once
            weight = LargeWeight(1 + (len(known) + 1) * STEP, variable, is_table)
            self._weights[variable.path] = known.setdefault(key, weight)

    @property
    def paths(self) -> frozenset[str]:
        """Paths of the weights that have stand-ins."""
        return frozenset(self._weights)

    @property
    def size(self) -> int:
        """Bytes of the weights that have stand-ins."""
        return sum(4 * math.prod(w.variable.shape) for w in set(self._weights.values()))

    def copy(self, model: keras.Model, kernels: Kernels) -> Any:
        """Returns a copy of the model with `Kernels`, for functions that `within` returns."""
        copy = type(model)(model.config, dtype="float32", kernels=kernels)
        for ours, theirs in zip(copy.variables, model.variables, strict=True):
            weight = self._weights.get(theirs.path)
            if weight is None:
                ours.assign(theirs.value)
                continue
            # Frees its memory: the functions do not read it.
            tf.raw_ops.AssignVariableOp(resource=ours.value.handle, value=tf.zeros([]))
            self._mapping.append((ours, weight.value))
        return copy

    def read(self, copy: keras.Model) -> list[tf.Variable]:
        """Returns the variables of the copy that its functions read."""
        replaced = {id(variable) for variable, _ in self._mapping}
        return [v.value for v in copy.variables if id(v) not in replaced]

    def within(self, function: Callable) -> Callable:
        """Returns a function of the copy that computes with the stand-ins when it is traced."""

        @functools.wraps(function)
        def computed(*args, **inputs):
            constants = [
                (variable, tf.constant(value, tf.float32, variable.shape, STAND_IN))
                for variable, value in self._mapping
            ]
            with keras.StatelessScope(constants):
                return function(*args, **inputs)

        return computed if self._mapping else function

    def code_of(self, path: str) -> int | None:
        """Returns the number that stands for a weight in int8, `None` if there is none."""
        if path not in self._weights:
            return None
        return self._codes.setdefault(path, len(self._codes) + 1)

    def note(self, function: Any) -> None:
        """Notes the constants of a concrete function, by which weights may be multiplied.

        Also notes whether it multiplies weights by matrices, or looks up rows of weights, that the
        converter would compute in advance. `replace` then raises an error.
        """
        self._is_computed |= computes_in_advance(function.graph)
        graph = function.graph.as_graph_def()
        for nodes in (graph.node, *(inner.node_def for inner in graph.library.function)):
            for node in nodes:
                tensor = node.attr["value"].tensor
                if node.op != "Const" or tensor.dtype != tf.float32.as_datatype_enum:
                    continue
                if all(axis.size == 1 for axis in tensor.tensor_shape.dim):
                    number = np.float32(tf.make_ndarray(tensor).item())
                    if TINY < abs(number) < 1 / TINY:
                        self._factors |= {float(number), float(1 / number)}

    def replace(self, content: bytes | bytearray) -> bytes | bytearray:
        """Returns a .tflite model with the weights in place of their stand-ins.

        Args:
            content: The bytes of the model.

        Raises:
            Unrecognized: If a weight is missing or does not have the expected form, or the
                converter has computed with its stand-in.
        """
        if not self._weights:
            return content
        if self._is_computed:
            raise Unrecognized(self.paths)
        if self._quantize == "none" and isinstance(content, bytes):
            content = bytearray(content)  # whose weights can be changed in place
        model = read_model(content)
        uses = Uses(model, self._values(), self._codes, self._weights).all()
        used = {use.weight for use in uses}
        missing = {path for path, weight in self._weights.items() if weight not in used}
        if missing:
            raise Unrecognized(missing)
        own = {use.tensor.buffer: use for use in uses}
        if complete_constants(model, own) and self._quantize == "none":
            content = write_model(model)
            model = read_model(content)
        if self._quantize == "none":  # every weight has a buffer to itself, of the right size
            for number, use in own.items():
                buffer = model.buffers[number].data
                if not np.may_share_memory(buffer, np.frombuffer(content, np.uint8)):
                    raise Unrecognized(self.paths)  # a model of more than 2 GB is read otherwise
                buffer.view(np.float32)[:] = use.numbers().ravel()
            return content
        buffers = {}
        for use in uses:
            use.store(model, buffers)
        drop_unused_buffers(model)
        return write_model(model)

    def _values(self):
        """Returns the values of the stand-ins and their products, with weights and factors."""
        return [
            (float(np.float32(weight.value) * np.float32(factor)), weight, factor)
            for weight in set(self._weights.values())
            for factor in self._factors
        ]


def computes_in_advance(graph: tf.Graph) -> bool:
    """Returns whether products or look-ups of stand-ins in a graph depend on constants alone.

    Args:
        graph: The graph of a concrete function. Its loops are not read: what their steps compute
            depends on the step.
    """
    constant, stand_ins = set(), set()  # names of operations
    for operation in graph.get_operations():  # in an order in which inputs come first
        inputs = {tensor.op.name for tensor in operation.inputs}
        if operation.type == "Const":
            constant.add(operation.name)
            if operation.name.rpartition("/")[2].startswith(STAND_IN):
                stand_ins.add(operation.name)
            continue
        if operation.type == "Shape" and operation.inputs[0].shape.is_fully_defined():
            constant.add(operation.name)
        elif inputs and inputs <= constant:
            constant.add(operation.name)
            if inputs & stand_ins:
                stand_ins.add(operation.name)
                if operation.type in COMPUTED:
                    return True
    return False


def _large(model):
    """Yields the large tables and kernels of a model, and whether each is a table."""
    tables = [layer.table for layer in getattr(model, "embeddings", ())]
    dense = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.Dense)]
    kinds = [(table, True) for table in tables] + [(layer.kernel, False) for layer in dense]
    for variable, is_table in {
        id(variable): (variable, is_table) for variable, is_table in kinds
    }.values():
        is_own = isinstance(variable, keras.Variable)  # with adapters, the kernel is a sum
        if is_own and len(variable.shape) == 2 and np.prod(variable.shape) >= SMALLEST:
            yield variable, is_table


def _digest(variable):
    """Returns what is the same for two variables with equal numbers."""
    numbers = variable.numpy()
    return numbers.shape, hashlib.sha256(np.ascontiguousarray(numbers)).digest()
