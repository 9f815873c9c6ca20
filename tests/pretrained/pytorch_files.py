"""Files as `torch.save` writes them, without PyTorch: its names are stand-ins here.

`test_torch_files.py` also has files that PyTorch wrote.
"""

import collections
import contextlib
import io
import pickle
import sys
import types
import unittest.mock
import zipfile

import numpy as np

STORAGES = {
    "float32": "FloatStorage", "float16": "HalfStorage", "float64": "DoubleStorage",
    "int64": "LongStorage",
}  # fmt: skip
PROTOCOL = 2  # of pickles
MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001
SYSTEM = {
    "protocol_version": VERSION,
    "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


class Storage:
    """The numbers of one tensor; the pickle contains a note instead."""

    def __init__(self, key, values, count=None, location="cpu"):
        self.key, self.values = key, values
        self.count = values.size if count is None else count
        self.kind = STORAGES[values.dtype.name]
        self.location = location


class Tensor:
    """An array as PyTorch describes it; `changes` replace parts of the description."""

    def __init__(self, storage, **changes):
        values = storage.values
        self.storage = storage
        strides = tuple(stride // values.itemsize for stride in values.strides)
        self.parts = {"offset": 0, "shape": values.shape, "strides": strides}
        self.changes = changes

    def __reduce__(self):
        parts = {**self.parts, "trained": False, "hooks": collections.OrderedDict()}
        parts = {**parts, **self.changes}.values()
        return sys.modules["torch._utils"]._rebuild_tensor_v2, (self.storage, *parts)


@contextlib.contextmanager
def stand_ins():
    """Makes `pickle` find PyTorch's names, for which it looks before it writes them."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for name in STORAGES.values():
        setattr(torch, name, type(name, (), {"__module__": "torch"}))

    def rebuild(*arguments):
        raise AssertionError("a test has unpickled a file")

    rebuild.__module__, rebuild.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = rebuild
    with unittest.mock.patch.dict(sys.modules, {"torch": torch, "torch._utils": utils}):
        yield


class Pickler(pickle.Pickler):
    def __init__(self, file, archive):
        super().__init__(file, protocol=PROTOCOL)
        self._more = () if archive else (None,)

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        kind = getattr(sys.modules["torch"], value.kind)
        return ("storage", kind, value.key, value.location, value.count, *self._more)


def pickled(value, archive=True):
    """Returns the pickle of a value."""
    file = io.BytesIO()
    with stand_ins():
        Pickler(file, archive).dump(value)
    return file.getvalue()


def described(arrays):
    """Returns the `Tensor`s of a dictionary of arrays, and their `Storage`s."""
    arrays = {name: np.ascontiguousarray(values) for name, values in arrays.items()}
    storages = {
        name: Storage(str(number), values) for number, (name, values) in enumerate(arrays.items())
    }
    tensors = collections.OrderedDict((name, Tensor(storage)) for name, storage in storages.items())
    return tensors, [*storages.values()]


def write(path, tensors, storages, archive=True):
    """Writes `Tensor`s, or anything else, as a ZIP archive or as a sequence of pickles."""
    if archive:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("archive/data.pkl", pickled(tensors))
            file.writestr("archive/byteorder", "little")
            for storage in storages:
                file.writestr(f"archive/data/{storage.key}", storage.values.tobytes())
            file.writestr("archive/version", "3\n")
        return
    with path.open("wb") as file:
        for value in (MAGIC, VERSION, SYSTEM):
            file.write(pickled(value))
        file.write(pickled(tensors, archive=False))
        file.write(pickled([storage.key for storage in storages]))
        for storage in storages:
            file.write(storage.values.size.to_bytes(8, "little"))
            file.write(storage.values.tobytes())


def save(path, arrays, archive=True):
    """Writes a dictionary of arrays."""
    write(path, *described(arrays), archive)
