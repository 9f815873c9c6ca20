"""Tensors of a .tflite model that hold the stand-ins of weights, and the weights in their place."""

import collections
import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from keras_transformer.export.litert.compact import codes_of_rows, scales_of_rows
from keras_transformer.export.litert.constants import add_buffer
from keras_transformer.export.litert.int4 import in_int4
from keras_transformer.export.litert.serialization import schema

CLOSE = 2.0**-20  # relative error of a value that is computed from int8 and its scale
OPERATORS, TYPES = schema.BuiltinOperator, schema.TensorType
DTYPES = {TYPES.FLOAT32: np.float32, TYPES.INT8: np.int8}
PRODUCT, LOOK_UP = (OPERATORS.FULLY_CONNECTED, 1), (OPERATORS.GATHER, 0)


class Unrecognized(Exception):
    """Weights of which the converter has computed something else.

    Args:
        paths: Paths of the weights.
    """

    def __init__(self, paths: Iterable[str]):
        self.paths = frozenset(paths)
        super().__init__(", ".join(sorted(self.paths)))


@dataclasses.dataclass(frozen=True, eq=False)
class LargeWeight:
    """A weight with a stand-in.

    Args:
        value: The number of which the stand-in consists.
        variable: The variable `[N, M]`.
        is_table: Whether its rows are outputs of a product, as those of a table `[V, D]`.
    """

    value: float
    variable: Any
    is_table: bool


@dataclasses.dataclass
class Use:
    """A tensor of a .tflite model that holds a weight, times a factor.

    Args:
        tensor: The tensor.
        weight: The weight.
        factor: The factor.
        is_transposed: Whether the weight is transposed.
        is_packed: Whether the tensor holds two numbers in a byte, in int4.
    """

    tensor: Any
    weight: LargeWeight
    factor: float
    is_transposed: bool
    is_packed: bool

    def numbers(self):
        """Returns the numbers that the tensor must hold, float32."""
        values = self.weight.variable.numpy()
        values = values.T if self.is_transposed else values
        return values if self.factor == 1 else values * np.float32(self.factor)

    def store(self, model, buffers):
        """Stores the numbers in a buffer of the model.

        Args:
            model: The model.
            buffers: Dictionary of the buffers that contain weights, and the scales of int8.
        """
        key = self.weight, self.is_transposed, self.is_packed, self.factor, self.tensor.type
        if key not in buffers:
            values, scales = self.numbers(), None
            if self.is_packed:
                values = in_int4(values).codes
            elif self.tensor.type == TYPES.INT8:
                scales = scales_of_rows(values)
                values, scales = codes_of_rows(values, scales), scales.astype(np.float32)
            buffers[key] = add_buffer(model, values), scales
        self.tensor.buffer, scales = buffers[key]
        if _scales(self.tensor) is not None:
            self.tensor.quantization.scale = scales


class Uses:
    """The tensors of a .tflite model that hold stand-ins.

    Args:
        model: The model.
        values: List of values with their weights and factors.
        codes: Dictionary from paths of weights to their values in int8.
        weights: Dictionary from paths to weights.
    """

    def __init__(self, model, values, codes, weights):
        self._model, self._values, self._weights = model, values, weights
        self._of_codes = {code: weights[path] for path, code in codes.items()}
        self._equal = {}
        self._smallest = min(np.prod(weight.variable.shape) for weight in weights.values())

    def all(self) -> list[Use]:
        """Returns all tensors that hold stand-ins.

        Raises:
            Unrecognized: If a weight does not have the expected form.
        """
        return [use for graph in self._model.subgraphs for use in self._in_graph(graph)]

    def _in_graph(self, graph):
        readers = collections.defaultdict(set)
        for operator in graph.operators:
            code = self._model.operatorCodes[operator.opcodeIndex].builtinCode
            for place, number in enumerate(operator.inputs):
                readers[number].add((code, place))
        for number in graph.outputs:
            readers[number].add(None)
        for number, tensor in enumerate(graph.tensors):
            if not self._is_large(tensor):
                continue
            found = self._find(tensor)
            if found is not None:
                yield _use_of(tensor, readers[number], *found)
            elif PRODUCT in readers[number]:
                raise Unrecognized(self._weights)  # perhaps computed from a stand-in

    def _is_large(self, tensor):
        data = self._model.buffers[tensor.buffer].data
        if tensor.shape is None or tensor.type not in DTYPES or data is None:
            return False
        numbers = 2 * len(data) if _may_be_packed(tensor) else np.prod(tensor.shape)
        return len(data) > 0 and numbers >= self._smallest

    def _find(self, tensor):
        """Returns the weight and the factor of a tensor, `None` if it holds no stand-in."""
        code = self._equal_number(tensor)
        if code is None:
            return None
        if tensor.type != TYPES.INT8:
            return self._nearest(code)
        scales = _scales(tensor)
        if scales is None:
            return (self._of_codes[code], 1.0) if code in self._of_codes else None
        return self._nearest(code * float(scales[0]), CLOSE) if np.ptp(scales) == 0 else None

    def _equal_number(self, tensor):
        """Returns the number of which a tensor consists, `None` if it has several."""
        if tensor.buffer not in self._equal:
            numbers = self._model.buffers[tensor.buffer].data.view(DTYPES[tensor.type])
            equal = numbers[0] == numbers[-1] and (numbers == numbers[0]).all()
            self._equal[tensor.buffer] = numbers[0].item() if equal else None
        return self._equal[tensor.buffer]

    def _nearest(self, value, error=0.0):
        """Returns the weight and the factor of a value, `None` if it is not a known one."""
        near = [known for known in self._values if abs(known[0] - value) <= error * abs(value)]
        if len({weight for _, weight, _ in near}) > 1:
            raise Unrecognized(self._weights)
        return min(near, key=lambda known: abs(known[0] - value))[1:] if near else None


def _use_of(tensor, readers, weight, factor):
    """Returns the `Use` of a tensor.

    Raises:
        Unrecognized: If something else than a product or a look-up reads the tensor, or it has
            another shape or quantisation.
    """
    shape, own = tuple(tensor.shape), tuple(weight.variable.shape)
    is_packed = _may_be_packed(tensor) and 2 * np.prod(shape) == np.prod(own)
    shape = (*shape[:-1], 2 * shape[-1]) if is_packed else shape
    # The weights of a product are stored as [outputs, inputs], as in a table [V, D].
    is_transposed = not weight.is_table if own[0] == own[1] else shape != own
    use = Use(tensor, weight, factor, is_transposed, is_packed)
    fits = shape == (own[::-1] if is_transposed else own)
    clear = own[0] != own[1] or weight.is_table or readers <= {PRODUCT}
    scales = _scales(tensor)
    by_rows = scales is None or (
        len(scales) == shape[0] and not tensor.quantization.quantizedDimension
    )
    if readers <= {PRODUCT, LOOK_UP} and fits and clear and by_rows:
        return use
    raise Unrecognized({weight.variable.path})


def _may_be_packed(tensor):
    """Returns whether a tensor holds codes of look-ups, which are not quantised for LiteRT."""
    return tensor.type == TYPES.INT8 and _scales(tensor) is None


def _scales(tensor):
    """Returns the scales of a tensor in int8, `None` without quantisation."""
    scales = None if tensor.quantization is None else tensor.quantization.scale
    return None if scales is None or not len(scales) else np.asarray(scales)


def drop_unused_buffers(model):
    """Removes the buffers that nothing refers to; the first one is empty and remains."""
    owners = [tensor for graph in model.subgraphs for tensor in graph.tensors]
    owners += model.metadata or []
    used = sorted({0, *(owner.buffer for owner in owners)})
    places = {number: place for place, number in enumerate(used)}
    model.buffers = [model.buffers[number] for number in used]
    for owner in owners:
        owner.buffer = places[owner.buffer]
