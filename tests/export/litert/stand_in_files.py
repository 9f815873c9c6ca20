"""Contents of .tflite models, for comparisons."""

import collections
import hashlib

import numpy as np
from tensorflow.lite.tools import flatbuffer_utils

LEFT_OUT = {"buffer", "name"}


def described(content):
    """Returns the contents of a .tflite model, apart from the order in which things are stored."""
    model = flatbuffer_utils.read_model_from_bytearray(bytearray(content))
    signatures = {
        bytes(s.signatureKey): _graph(model, s.subgraphIndex) for s in model.signatureDefs
    }
    return signatures, sum(len(buffer.data) for buffer in model.buffers if buffer.data is not None)


def _graph(model, number):
    """Returns digests of the outputs of a graph and of all operators, each with its whole past."""
    graph = model.subgraphs[number]
    digests = {number: f"input {place}" for place, number in enumerate(graph.inputs)}
    for number, tensor in enumerate(graph.tensors):
        data = model.buffers[tensor.buffer].data
        if data is not None and len(data):
            digests[number] = _digest(_plain(vars(tensor)) + (bytes(data),))
    operators = collections.Counter()
    for operator in graph.operators:
        code = model.operatorCodes[operator.opcodeIndex]
        past = [digests.get(number) for number in operator.inputs]
        options = {} if operator.builtinOptions is None else dict(vars(operator.builtinOptions))
        for name in [name for name in options if name.endswith("SubgraphIndex")]:
            options[name] = _graph(model, options[name])
        digest = _digest((code.builtinCode, code.version, past, _plain(options)))
        operators[digest] += 1
        for place, number in enumerate(operator.outputs):
            about = _plain(vars(graph.tensors[number]))
            digests[number] = _digest((digest, place, about))
    return [digests[number] for number in graph.outputs], sorted(operators.items())


def _digest(value):
    return hashlib.sha256(repr(value).encode()).hexdigest()


def _plain(value):
    """Returns a value of a model as nested tuples, without names and places."""
    if isinstance(value, dict):
        fields = sorted(value.items())
        return tuple((name, _plain(item)) for name, item in fields if name not in LEFT_OUT)
    if isinstance(value, (list, tuple, np.ndarray)):
        return tuple(_plain(item) for item in value)
    if value is None or isinstance(value, (int, float, bool, bytes, str)):
        return value
    return value.item() if isinstance(value, np.generic) else _plain(vars(value))
