"""One .tflite model from several, in which equal constants are stored once."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from keras_transformer.export.litert.equal_numbers import is_shortened
from keras_transformer.export.litert.serialization import read_model, write_model

GRAPHS = ("subgraphindex", "subgraphindices", "subgraph")  # how fields end that refer to graphs
RUNTIME = b"min_runtime_version"  # the name of the metadata that must hold for all graphs
LARGE = 2**12  # bytes of a constant that is not kept together with its model


def merge(contents: Iterable[bytes]) -> bytearray:
    """Returns a .tflite model with the signatures of several models.

    Args:
        contents: Models, whose signatures have different names. Each is read before the next one
            is requested. Of a large constant that several have, one is kept.
    """
    merger = _Merger()
    for content in contents:
        merger.add(*_separated(content, merger.constants))
        del content  # noqa: PLW0642  (before the next one is made)
    return write_model(merger.model)


def _separated(content, constants):
    """Returns a model without its large constants, and those by the numbers of their buffers.

    The fields of a model are views into the bytes that it was read from, so it is written and read
    again without the constants.

    Args:
        content: The bytes of the model.
        constants: Dictionary from digests to arrays, to which new constants are added.
    """
    model = read_model(content)
    own = {}
    for number, buffer in enumerate(model.buffers):
        if buffer.data is not None and len(buffer.data) >= LARGE:
            digest = _digest(buffer.data)
            if digest not in constants:
                constants[digest] = np.array(buffer.data)
            own[number], buffer.data = constants[digest], None
    return read_model(write_model(model)), own


class _Merger:
    """Model to which others are added.

    Attributes:
        model: The model. `None`: none has been added.
        constants: The large constants by their digests.
    """

    def __init__(self):
        self.model: Any = None
        self.constants = {}
        self._buffers, self._codes = {}, {}

    def add(self, model, constants):
        """Adds the graphs and signatures of a model, which is changed.

        Args:
            model: The model.
            constants: Large constants that it lacks, by the numbers of their buffers.
        """
        if self.model is None:
            self.model = _empty_like(model)
        offset = len(self.model.subgraphs)
        codes = [self._code(code) for code in model.operatorCodes]
        for graph in model.subgraphs:
            for tensor in graph.tensors:
                number = tensor.buffer
                data = constants.get(number, model.buffers[number].data)
                is_one = is_shortened(tensor, data) or _may_be_stand_in(data)
                kind = (tuple(tensor.shape), tensor.type) if is_one else None
                tensor.buffer = self._buffer(data, kind)
            for operator in graph.operators:
                operator.opcodeIndex = codes[operator.opcodeIndex]
                for options in (operator.builtinOptions, operator.builtinOptions2):
                    _shift(options, offset)
        for signature in model.signatureDefs:
            model.subgraphs[signature.subgraphIndex].name = signature.signatureKey
            signature.subgraphIndex += offset
        self.model.subgraphs += model.subgraphs
        self.model.signatureDefs += model.signatureDefs
        self._add_metadata(model)

    def _code(self, code):
        """Returns the number of a kind of operators, in the newest version that any model needs."""
        key = code.builtinCode, code.customCode
        if key not in self._codes:
            self._codes[key] = len(self.model.operatorCodes)
            self.model.operatorCodes.append(code)
        known = self.model.operatorCodes[self._codes[key]]
        known.version = max(known.version, code.version)
        return self._codes[key]

    def _buffer(self, data, kind):
        """Returns the number of a buffer, which stand-ins of different kinds do not share."""
        if data is None or not len(data):
            return 0
        key = kind, _digest(data)
        if key not in self._buffers:
            self._buffers[key] = len(self.model.buffers)
            self.model.buffers.append(type(self.model.buffers[0])())
            self.model.buffers[-1].data = data
        return self._buffers[key]

    def _add_metadata(self, model):
        """Keeps the metadata of the first model, but the newest runtime that any model needs."""
        known = {entry.name: entry for entry in self.model.metadata}
        for entry in model.metadata or ():
            data, ours = model.buffers[entry.buffer].data, known.get(entry.name)
            if ours is None:
                self.model.metadata.append(entry)
            elif entry.name != RUNTIME or _version(data) <= _version(
                self.model.buffers[ours.buffer].data
            ):
                continue
            (ours or entry).buffer = self._buffer(data, None)


def _empty_like(model):
    """Returns a model without graphs, with the version and the description of another one."""
    empty = type(model)()
    empty.version, empty.description = model.version, model.description
    empty.buffers = [type(model.buffers[0])()]  # by convention the first one is empty
    empty.operatorCodes, empty.subgraphs, empty.signatureDefs, empty.metadata = [], [], [], []
    return empty


def _may_be_stand_in(data):
    """Returns whether a large constant consists of equal numbers of four bytes: see `StandIns`."""
    is_large = data is not None and len(data) >= LARGE
    return is_large and len(data) % 4 == 0 and np.ptp(data.view(np.uint32)) == 0


def _digest(data):
    return hashlib.sha256(np.ascontiguousarray(data)).digest()


def _shift(options, offset):
    """Adds `offset` to the numbers of graphs in the options of an operator, if there are any."""
    for name, value in vars(options).items() if options is not None else ():
        if name.lower().endswith(GRAPHS):
            shifted = value + offset if isinstance(value, int) else [n + offset for n in value]
            setattr(options, name, shifted)


def _version(data):
    """Returns a version such as 1.14.0, which zeros may follow, as numbers."""
    return tuple(int(number) for number in bytes(data).rstrip(b"\0").split(b"."))
