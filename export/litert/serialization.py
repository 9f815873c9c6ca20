"""`.tflite` models as objects and as bytes, with no more copies of their weights than necessary."""

from typing import Any

import flatbuffers
import numpy as np

from keras_transformer.export.litert.engines import load_schema

schema = load_schema()
IDENTIFIER = b"TFL3"
BUFFERS_FOLLOW = b"buffer_location"  # name of the metadata of a model whose buffers have offsets
ENTRY = 512  # bytes of a tensor or an operator without its lists of numbers, at most


class Builder(flatbuffers.Builder):
    """Builder that copies arrays once; that of flatbuffers copies them three times.

    Args:
        size: Bytes of its memory, which is doubled whenever it is full.
    """

    def CreateNumpyVector(self, x):  # noqa: N802  (the name of the base class)
        if x.dtype.str[0] == ">":
            return super().CreateNumpyVector(x)
        self.StartVector(x.itemsize, x.size, x.dtype.alignment)
        self.head -= x.nbytes
        np.frombuffer(self.Bytes, x.dtype, x.size, self.head)[:] = x
        self.vectorNumElems = x.size
        return self.EndVector()


def read_model(content: bytes | bytearray) -> Any:
    """Returns a model as an object, a `ModelT` of the schema.

    Its arrays are views of `content`, and can only be changed in place if that is a bytearray.
    """
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    apart = [buffer for buffer in model.buffers if buffer.offset]
    for buffer in apart:  # of a large model, which follow the rest
        buffer.data = np.frombuffer(content, np.uint8, buffer.size, buffer.offset)
        buffer.offset = buffer.size = 0
    if apart:
        _forget_places(model)
    return model


def _forget_places(model):
    """Removes the metadata that buffers follow the model, with its buffer."""
    kept = []
    for entry in model.metadata or ():
        if entry.name == BUFFERS_FOLLOW:
            model.buffers[entry.buffer].data = None
        else:
            kept.append(entry)
    model.metadata = kept


def write_model(model: Any, builder: Builder | None = None) -> bytearray:
    """Returns the bytes of a model.

    A builder doubles its memory whenever it is full, for which it has to copy it, and its `Output`
    is another copy. Here its memory is large enough from the beginning, and is the result.

    Args:
        model: A `ModelT`.
        builder: An empty builder. `None`: a new one, large enough for the model.
    """
    builder = Builder(_size(model)) if builder is None else builder
    builder.Finish(model.Pack(builder), file_identifier=IDENTIFIER)
    content = builder.Bytes
    del content[: builder.Head()]
    return content


def custom_operators(content) -> list[str]:
    """Returns the names of the operators of a .tflite model that are not LiteRT's builtin ones.

    Args:
        content: The bytes of the model.
    """
    codes = read_model(content).operatorCodes
    return sorted(code.customCode.decode() for code in codes if code.customCode)


def _size(model):
    """Returns a number of bytes that a model hardly exceeds."""
    size = sum(len(buffer.data) for buffer in model.buffers if buffer.data is not None)
    for graph in model.subgraphs:
        size += ENTRY * (len(graph.tensors) + len(graph.operators))
        for tensor in graph.tensors:
            scales = getattr(tensor.quantization, "scale", None)
            size += 0 if scales is None else 12 * len(scales)  # and a zero point for each of them
    return min(size + 2**16, 2**31)  # the largest size of a builder
