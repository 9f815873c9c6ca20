"""Static int8: changes to a model that LiteRT's converter has written."""

import numpy as np

from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.compact import codes_of_rows, scales_of_rows
from keras_transformer.export.litert.constants import add_buffer, add_constant
from keras_transformer.export.litert.serialization import read_model, schema, write_model

OPERATORS, TYPES = schema.BuiltinOperator, schema.TensorType
VERSION = 12  # of FULLY_CONNECTED: the first with a scale for each row of the weights


def finish_static_int8(content) -> bytearray:
    """Returns a .tflite model in which the weights of all products are in int8.

    The converter computes a product in int8 if `fake_quantize` has rounded its input and output. It
    leaves other weights, those of the logits, in float32. Here they become int8, and LiteRT rounds
    their inputs at run time, as in dynamic int8. The converter also rounds the results of every
    softmax, even if no product in int8 follows; this is undone.

    Args:
        content: The bytes of a .tflite model.

    Raises:
        ExportError: If the converter left a product in float32 although its input was rounded, as
            TensorFlow 2.21 does in a loop if there is no such product outside of it.
    """
    model = read_model(content)
    weights = _Weights(model)
    for graph in model.subgraphs:
        _restore_softmax(model, graph)
        made_in_int8 = {
            number
            for operator in graph.operators
            if _kind(model, operator) == OPERATORS.DEQUANTIZE
            for number in operator.outputs
        }
        for operator in graph.operators:
            if _kind(model, operator) == OPERATORS.FULLY_CONNECTED:
                weights.quantize(graph, operator, made_in_int8)
    return write_model(model)


class _Weights:
    """Quantisation of the float32 weights of a model, each only once."""

    def __init__(self, model):
        self._model = model
        self._known = {_bytes(buffer): number for number, buffer in enumerate(model.buffers)}
        self._done = {}

    def quantize(self, graph, operator, made_in_int8):
        """Quantises the weights of a FULLY_CONNECTED in place, if they are in float32."""
        tensor = graph.tensors[operator.inputs[1]]
        known = tensor.buffer in self._done or _bytes(self._model.buffers[tensor.buffer])
        if tensor.type != TYPES.FLOAT32 or not known:
            return
        if operator.inputs[0] in made_in_int8:
            name = tensor.name.decode()
            raise ExportError(f"LiteRT's converter left the product with {name} in float32.")
        if tensor.buffer not in self._done:
            self._done[tensor.buffer] = self._replace(tensor)
        tensor.type = TYPES.INT8
        tensor.buffer, tensor.quantization = self._done[tensor.buffer]
        operator.builtinOptions.asymmetricQuantizeInputs = True
        code = self._model.operatorCodes[operator.opcodeIndex]
        code.version = max(code.version, VERSION)

    def _replace(self, tensor):
        """Quantises the buffer of a tensor.

        Returns:
            The number of the buffer with the codes in int8, and the quantisation parameters.
        """
        buffer = self._model.buffers[tensor.buffer]
        values = np.frombuffer(_bytes(buffer), np.float32).reshape(tensor.shape)
        scales = scales_of_rows(values)
        codes = codes_of_rows(values, scales).tobytes()
        # The table for looking up embeddings may already be a buffer with these codes.
        number = self._known.setdefault(codes, tensor.buffer)
        buffer.data = None if number != tensor.buffer else np.frombuffer(codes, np.uint8)
        quantization = schema.QuantizationParametersT()
        quantization.scale = scales.astype(np.float32)
        quantization.zeroPoint = np.zeros(len(scales), np.int64)
        return number, quantization


def _restore_softmax(model, graph):
    """Removes the rounding between a softmax and the mask that follows it.

    Rounded to multiples of 1/256, a hundred equal attention weights would sum to 1.17.
    """
    makers = {number: operator for operator in graph.operators for number in operator.outputs}
    dropped, zero = [], None
    for last in graph.operators:
        path = _path_back(model, makers, last)
        if path is not None:
            mask, first = path
            zero = _add_zero(model, graph) if zero is None else zero
            mask.inputs = [mask.inputs[0], first.inputs[0], zero]
            mask.outputs = last.outputs
            dropped += [first, last]
    graph.operators = [
        operator for operator in graph.operators if not any(operator is x for x in dropped)
    ]


def _path_back(model, makers, last):
    """Returns the SELECT_V2 and the QUANTIZE between a softmax and the DEQUANTIZE `last`.

    Returns `None` if the operators before `last` are others.
    """
    kinds = OPERATORS.DEQUANTIZE, OPERATORS.SELECT_V2, OPERATORS.QUANTIZE, OPERATORS.SOFTMAX
    path, operator = [], last
    for kind, place in zip(kinds, (0, 1, 0, 0), strict=True):
        if operator is None or _kind(model, operator) != kind:
            return None
        path.append(operator)
        operator = makers.get(operator.inputs[place])
    return path[1:3]


def _add_zero(model, graph):
    """Adds a scalar 0 in float32 to a graph and returns its number."""
    return add_constant(graph, add_buffer(model, np.zeros(1, np.float32)), (), TYPES.FLOAT32)


def _kind(model, operator):
    code = model.operatorCodes[operator.opcodeIndex]
    return max(code.builtinCode, code.deprecatedBuiltinCode)


def _bytes(buffer):
    return b"" if buffer.data is None else bytes(buffer.data)
