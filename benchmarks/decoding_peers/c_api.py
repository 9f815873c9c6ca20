"""The SavedModel of `keras-transformer export`, run by TensorFlow's C API without its Python.

Serving in Go, Java, Rust or C++ works like this. The library is the one in TensorFlow's Python
package, which is not imported; `ctypes` calls its functions.
"""

import ctypes
import importlib.util
import pathlib
import struct

import numpy as np
from decoding_files import path_of
from decoding_task import Case, Model, without_end

from decoding_peers.parallel import Parts, fastest

INT32 = 3  # TensorFlow's number of the type
ONE_THREAD = b"\x10\x01\x28\x01"  # ConfigProto: one thread within and between operations
SIGNATURES, INPUTS, OUTPUTS, NAME = 5, 1, 2, 1  # fields of MetaGraphDef, SignatureDef, TensorInfo


class Buffer(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("free", ctypes.c_void_p),
    ]


class Output(ctypes.Structure):
    _fields_ = [("operation", ctypes.c_void_p), ("index", ctypes.c_int)]


def make(order):
    """Loads the SavedModel."""
    model, case = Model(**order["model"]), Case(**order["case"])
    loaded = SavedModel(path_of(order["folder"], "saved-model", "none") / "1")
    signature = "tokens" if case.beam_size == 1 else "beam_tokens"
    run = loaded.function(signature, "source", "tokens")
    sources = case.sources(model)

    def rows(tokens):
        return without_end(tokens.reshape(len(tokens), -1).tolist())

    return fastest([Parts([lambda: run(sources)], rows, 1, 1)])


class SavedModel:
    """A SavedModel in a session of the C API.

    Args:
        folder: The folder with `saved_model.pb`.
    """

    def __init__(self, folder):
        place = package("tensorflow")
        ctypes.CDLL(str(place / "libtensorflow_framework.so.2"))
        self._c = ctypes.CDLL(str(place / "libtensorflow_cc.so.2"))
        for name in ("TF_NewStatus", "TF_NewGraph", "TF_NewSessionOptions", "TF_NewBuffer",
                     "TF_Message", "TF_LoadSessionFromSavedModel", "TF_GraphOperationByName",
                     "TF_AllocateTensor", "TF_TensorData", "TF_LoadLibrary"):  # fmt: skip
            getattr(self._c, name).restype = ctypes.c_void_p
        self._status = ctypes.c_void_p(self._c.TF_NewStatus())
        for path in sorted((package("tensorflow_text") / "python/ops").glob("_*.so")):
            self._c.TF_LoadLibrary(str(path).encode(), self._status)
            self._check()
        options = ctypes.c_void_p(self._c.TF_NewSessionOptions())
        self._c.TF_SetConfig(options, ONE_THREAD, ctypes.c_size_t(len(ONE_THREAD)), self._status)
        self._graph = ctypes.c_void_p(self._c.TF_NewGraph())
        about = ctypes.c_void_p(self._c.TF_NewBuffer())
        self._session = ctypes.c_void_p(
            self._c.TF_LoadSessionFromSavedModel(
                options,
                None,
                str(folder).encode(),
                (ctypes.c_char_p * 1)(b"serve"),
                1,
                self._graph,
                about,
                self._status,
            )  # fmt: skip
        )
        self._check()
        content = ctypes.cast(about, ctypes.POINTER(Buffer)).contents
        self._signatures = signatures(ctypes.string_at(content.data, content.length))
        self._c.TF_DeleteBuffer(about)

    def function(self, signature, source, target):
        """Returns a function from an int32 matrix to an int32 array.

        Args:
            signature: Name of the signature.
            source, target: Names of its input and its output.
        """
        inputs, outputs = self._signatures[signature]
        given, wanted = self._output(inputs[source]), self._output(outputs[target])

        def run(values):
            sizes = (ctypes.c_int64 * values.ndim)(*values.shape)
            tensor = ctypes.c_void_p(
                self._c.TF_AllocateTensor(INT32, sizes, values.ndim, ctypes.c_size_t(values.nbytes))
            )
            values = np.ascontiguousarray(values, np.int32)
            place = ctypes.c_void_p(self._c.TF_TensorData(tensor))
            ctypes.memmove(place, values.ctypes.data, values.nbytes)
            found = (ctypes.c_void_p * 1)()
            self._c.TF_SessionRun(
                self._session, None, ctypes.byref(given), (ctypes.c_void_p * 1)(tensor), 1,
                ctypes.byref(wanted), found, 1, None, 0, None, self._status,
            )  # fmt: skip
            self._check()
            result = ctypes.c_void_p(found[0])
            shape = [self._c.TF_Dim(result, axis) for axis in range(self._c.TF_NumDims(result))]
            size = 4 * int(np.prod(shape))
            data = ctypes.string_at(self._c.TF_TensorData(result), size)
            for used in (tensor, result):
                self._c.TF_DeleteTensor(used)
            return np.frombuffer(data, np.int32).reshape(shape)

        return run

    def _output(self, name):
        """Returns the `Output` with a name such as `StatefulPartitionedCall:1`."""
        operation, _, index = name.partition(":")
        found = self._c.TF_GraphOperationByName(self._graph, operation.encode())
        return Output(found, int(index or 0))

    def _check(self):
        if self._c.TF_GetCode(self._status):
            message = ctypes.string_at(self._c.TF_Message(self._status))
            raise RuntimeError(message.decode(errors="replace"))


def package(name):
    """Returns the folder of a Python package, which is not imported."""
    return pathlib.Path(importlib.util.find_spec(name).submodule_search_locations[0])


def signatures(content):
    """Returns inputs and outputs of each signature of a MetaGraphDef: tensors by their names."""

    def tensors(entries):
        pairs = (dict(fields(entry)) for entry in entries)
        return {
            pair[1].decode(): dict(fields(pair[2]))[NAME].decode()
            for pair in pairs
            if NAME in dict(fields(pair[2]))
        }

    found = {}
    for number, entry in fields(content):
        if number == SIGNATURES:
            pair = dict(fields(entry))
            parts = [*fields(pair[2])]
            found[pair[1].decode()] = tuple(
                tensors(value for number, value in parts if number == wanted)
                for wanted in (INPUTS, OUTPUTS)
            )
    return found


def fields(message):
    """Yields the numbers and values of the fields of a message of Protocol Buffers."""
    place = 0

    def varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while place < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            size = varint()
            place += size
            yield key >> 3, message[place - size : place]
        else:
            size, form = (8, "<q") if key & 7 == 1 else (4, "<i")
            place += size
            yield key >> 3, struct.unpack(form, message[place - size : place])[0]
