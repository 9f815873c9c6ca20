"""Constants that are added to a .tflite model."""

import numpy as np

from keras_transformer.export.litert.serialization import schema


def add_buffer(model, values) -> int:
    """Adds a buffer with the bytes of an array to a model and returns its number."""
    buffer = schema.BufferT()
    buffer.data = np.ascontiguousarray(values).view(np.uint8).ravel()
    model.buffers.append(buffer)
    return len(model.buffers) - 1


def add_constant(graph, buffer, shape, type) -> int:
    """Adds a tensor to a graph and returns its number.

    Args:
        graph: The graph.
        buffer: Number of the buffer with its values.
        shape: Tuple of its sizes.
        type: One of `TensorType`.
    """
    tensor = schema.TensorT()
    tensor.name, tensor.shape, tensor.type, tensor.buffer = b"", list(shape), type, buffer
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1
