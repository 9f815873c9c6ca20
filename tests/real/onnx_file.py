"""The weights of an ONNX file, read without the `onnx` package.

ONNX is a message of Protocol Buffers; only the fields of `onnx.proto3` that hold weights are read.
"""

import re

import numpy as np

# Numbers of fields in onnx.proto3.
GRAPH = 7
NODE, INITIALIZER = 1, 5
NODE_INPUT, NODE_NAME, NODE_TYPE, NODE_ATTRIBUTE = 1, 3, 4, 5
ATTRIBUTE_NAME, ATTRIBUTE_INT = 1, 3
DIMS, DATA_TYPE, TENSOR_NAME = 1, 2, 8
FLOAT_DATA, INT32_DATA, INT64_DATA, RAW_DATA = 4, 5, 7, 9
TYPES = {1: "<f4", 2: "u1", 3: "i1", 6: "<i4", 7: "<i8", 10: "<f2", 11: "<f8"}


def varint(data, at):
    """Returns a number of variable length and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """Yields the number and value of every field of a message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            length, at = varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = data[at : at + length], at + length
        yield key >> 3, value


def values(data, number):
    return [value for found, value in fields(data) if found == number]


def text(data, number):
    return bytes(values(data, number)[0]).decode()


def integers(data, number):
    """Returns the integers of a field, packed or not."""
    found = []
    for value in values(data, number):
        while not isinstance(value, int) and len(value):
            packed, used = varint(value, 0)
            found.append(packed)
            value = value[used:]
        if isinstance(value, int):
            found.append(value)
    return found


def tensor(data):
    """Returns the name and values of a tensor."""
    kind = TYPES[values(data, DATA_TYPE)[0]]
    raw, floats = values(data, RAW_DATA), values(data, FLOAT_DATA)
    if raw or floats:
        numbers = np.frombuffer(b"".join(raw or floats), kind)
    else:
        numbers = np.array(integers(data, INT32_DATA) or integers(data, INT64_DATA), kind)
    return text(data, TENSOR_NAME), numbers.reshape(integers(data, DIMS))


def unpacked(packed, scales, attributes):
    """The weights of `MatMulNBits` [N, K]: blocks of numbers of 4 bits, with a scale for each."""
    count, size, block = attributes["N"], attributes["K"], attributes["block_size"]
    if attributes["bits"] != 4:
        raise ValueError(f"Only 4 bits are read. Received: bits={attributes['bits']}.")
    numbers = np.stack([packed & 15, packed >> 4], -1).reshape(count, -1, block)
    weights = (numbers.astype(np.float32) - 8) * scales.reshape(count, -1, 1)
    return weights.reshape(count, -1)[:, :size]


def weights(path):
    """Returns the weights of a 4-bit ONNX file by the names of the PyTorch module it came from.

    Matrices are `[out, in]` again, as `torch.nn.Linear` stores them.
    """
    graph = values(memoryview(path.read_bytes()), GRAPH)[0]
    stored = dict(tensor(value) for value in values(graph, INITIALIZER))
    found = {}
    for node in values(graph, NODE):
        if text(node, NODE_TYPE) != "MatMulNBits":
            continue
        attributes = {
            text(value, ATTRIBUTE_NAME): next(iter(values(value, ATTRIBUTE_INT)), 0)
            for value in values(node, NODE_ATTRIBUTE)
        }
        _, packed, scales = (bytes(value).decode() for value in values(node, NODE_INPUT))
        name = re.sub(r"/MatMul_Q4$", "", text(node, NODE_NAME)).strip("/").replace("/", ".")
        found[f"{name}.weight"] = unpacked(stored.pop(packed), stored.pop(scales), attributes)
    for name in [name for name in stored if name.endswith("_quantized")]:
        base = name.removesuffix("_quantized")
        numbers, zero = stored.pop(name), stored.pop(f"{base}_zero_point")
        found[base] = (numbers.astype(np.float32) - zero) * stored.pop(f"{base}_scale")
    named = {
        name: value for name, value in stored.items() if name.startswith(("bert.", "classifier."))
    }
    return {
        name: np.ascontiguousarray(value, np.float32) for name, value in {**found, **named}.items()
    }
