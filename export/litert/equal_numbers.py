"""Large constants of equal numbers, as stand-ins of weights are, as one number each."""

import math

import numpy as np

from keras_transformer.export.litert.serialization import read_model, schema, write_model

SMALLEST = 2**14  # numbers in a constant that is shortened
SIZE = 4  # bytes of a number, and of a shortened constant


def without_equal_numbers(content: bytes) -> bytearray:
    """Returns a .tflite model with one number of each large constant of equal numbers in float32.

    LiteRT cannot run it: see `complete_constants`.

    Args:
        content: The bytes of the model.
    """
    model = read_model(content)
    for tensor in _tensors(model):
        buffer = model.buffers[tensor.buffer]
        if buffer.data is None or len(buffer.data) < SIZE * SMALLEST:
            continue
        numbers = buffer.data.view(np.uint32)
        if numbers[0] == numbers[-1] and (numbers == numbers[0]).all():
            buffer.data = np.array(buffer.data[:SIZE])
    return write_model(model)


def complete_constants(model, written) -> bool:
    """Gives constants that `without_equal_numbers` has shortened all of their numbers again.

    Args:
        model: A model as `read_model` returns it, which is changed.
        written: Numbers of buffers whose numbers will be replaced. They become zeros, which take no
            memory before they are copied.

    Returns:
        Whether there are any.
    """
    is_changed = False
    for tensor in _tensors(model):
        buffer, count = model.buffers[tensor.buffer], math.prod(map(int, tensor.shape))
        if is_shortened(tensor, buffer.data):
            is_changed, number = True, buffer.data.view(np.uint32)[0]
            is_written = tensor.buffer in written
            numbers = np.zeros(count, np.uint32) if is_written else np.full(count, number)
            buffer.data = numbers.view(np.uint8)
    return is_changed


def is_shortened(tensor, data) -> bool:
    """Returns whether a tensor, with the bytes of its buffer, has fewer numbers than its shape."""
    if tensor.type != schema.TensorType.FLOAT32 or data is None or tensor.shape is None:
        return False
    return len(data) == SIZE and math.prod(map(int, tensor.shape)) >= SMALLEST


def _tensors(model):
    return [
        tensor
        for graph in model.subgraphs
        for tensor in graph.tensors
        if tensor.type == schema.TensorType.FLOAT32 and tensor.shape is not None
    ]
