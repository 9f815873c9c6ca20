"""Files of tensors that PyTorch wrote, such as `pytorch_model.bin`, read as data.

Such a file contains a pickle. A pickle is a program, and unpickling it may run anything, so nothing
is unpickled here. `pickletools` of the standard library splits the program into steps, and
`_Structure` follows only steps that build dictionaries, lists, tuples, numbers and texts. A step
may name one of the functions of PyTorch that describe a tensor. `_Structure` imports no such name,
and refuses all other names. PyTorch is not needed.

`torch.save` writes a ZIP archive or, before PyTorch 1.6 of 2020, several pickles followed by the
values of the tensors. Sizes are checked against the size of the file before memory is allocated.
"""

import math
import os
import pickletools
import struct
import zipfile
from typing import Any, NamedTuple

import numpy as np

LONGEST_PROGRAM = 64 * 2**20  # bytes; a model with 1,000 tensors has 0.1 million
MAGIC = (
    b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # a number; begins a file from before PyTorch 1.6
)
VERSION = 1001  # in the pickle after it
# PyTorch's name of a type of numbers: ours, and NumPy's. Bits of bfloat16 are read as integers.
TYPES = {
    "FloatStorage": ("F32", "<f4"),
    "HalfStorage": ("F16", "<f2"),
    "BFloat16Storage": ("BF16", "<u2"),
    "DoubleStorage": ("F64", "<f8"),
    "LongStorage": ("I64", "<i8"),
    "IntStorage": ("I32", "<i4"),
    "ShortStorage": ("I16", "<i2"),
    "CharStorage": ("I8", "<i1"),
    "ByteStorage": ("U8", "<u1"),
    "BoolStorage": ("BOOL", "?"),
}
DICTIONARY = "collections OrderedDict"
TENSORS = {"torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2"}  # the first: of 2017
PARAMETER = "torch._utils _rebuild_parameter"
NAMES = {DICTIONARY, *TENSORS, PARAMETER, *(f"torch {name}" for name in TYPES)}


class TorchFile:
    """The tensors of a file, which are read one by one; see `SafetensorsFile`.

    Args:
        path: The file, a `pathlib.Path`.

    Raises:
        ValueError: If the file is damaged, or contains anything but named tensors; the error names
            the file.
        OSError: If the file cannot be read.

    Attributes:
        shapes: Dictionary from the names of the tensors to their shapes.
        types: Dictionary from these names to `"F32"`, `"F16"`, `"BF16"`, `"I64"` or another type.
    """

    def __init__(self, path):
        self.path = path
        try:
            self._storages = (_Archive if zipfile.is_zipfile(path) else _Sequence)(path)
            tensors = self._storages.content
            if not isinstance(tensors, dict) or not tensors:
                raise _Refused("must contain named tensors, a `state_dict`")
            for name, tensor in tensors.items():
                if not isinstance(name, str) or not isinstance(tensor, _Tensor):
                    raise _Refused(
                        "must contain nothing but named tensors, a `state_dict`. Received: "
                        f"{name!r}"
                    )
                tensor.check(name)
        except _Refused as error:
            raise ValueError(f"{path} {error}.") from error
        except DAMAGE as error:
            raise ValueError(f"{path} is damaged or not a file of PyTorch.") from error
        self._tensors = tensors
        self.shapes = {name: tensor.shape for name, tensor in tensors.items()}
        self.types = {name: TYPES[tensor.storage.type][0] for name, tensor in tensors.items()}

    def read(self, name) -> np.ndarray:
        """Returns a tensor as a float32 array.

        Raises:
            ValueError: If there is no tensor of this name, or the file is damaged.
        """
        if name not in self._tensors:
            raise ValueError(f"{self.path}: the tensor {name} is missing.")
        tensor = self._tensors[name]
        try:
            return tensor.values(self._storages.read(tensor.storage))
        except _Refused as error:
            raise ValueError(f"{self.path} {error}.") from error
        except DAMAGE as error:
            raise ValueError(f"{self.path} is damaged: {name} cannot be read.") from error


class _Refused(Exception):
    """A sentence about a file, without its path and full stop."""


def _damaged(reason):
    return _Refused(f"is damaged: {reason}")


# What a damaged archive or program raises.
DAMAGE = (
    *(ValueError, TypeError, LookupError, AttributeError, OverflowError, EOFError, RuntimeError),
    *(zipfile.BadZipFile, struct.error),
)


class _Storage(NamedTuple):
    """Numbers that tensors share."""

    key: str
    type: str
    count: int

    @property
    def dtype(self):
        return np.dtype(TYPES[self.type][1])

    @property
    def bytes(self):
        return self.count * self.dtype.itemsize


class _Tensor(NamedTuple):
    """A view of a storage."""

    storage: _Storage
    offset: int
    shape: tuple
    strides: tuple

    def check(self, name):
        """Refuses a view that leaves its storage, or would be larger than it."""
        storage, *sizes = self
        numbers = [self.offset, *self.shape, *self.strides, storage.count]
        inside = all(type(number) is int and number >= 0 for number in numbers)
        inside = inside and len(self.shape) == len(self.strides) <= 32
        if inside and math.prod(self.shape):
            steps = zip(self.shape, self.strides, strict=True)
            last = self.offset + sum((size - 1) * stride for size, stride in steps)
            inside = max(last + 1, math.prod(self.shape)) <= storage.count
        if not inside:
            raise _damaged(
                f"{name} must fit into its {storage.count} numbers. Received: offset, "
                f"shape and strides {sizes}"
            )

    def values(self, numbers):
        """Returns a float32 array with the values, from all numbers of the storage."""
        if self.storage.type == "BFloat16Storage":  # the upper half of a float32
            numbers = (numbers.astype("<u4") << 16).view("<f4")
        strides = [stride * numbers.itemsize for stride in self.strides]
        view = np.lib.stride_tricks.as_strided(numbers[self.offset :], self.shape, strides)
        with np.errstate(over="ignore"):  # infinite values are refused later
            return np.array(view, "float32")


class _Archive:
    """A ZIP archive with `NAME/data.pkl` and the numbers of each storage in `NAME/data/KEY`.

    Attributes:
        content: What `data.pkl` describes.
    """

    def __init__(self, path):
        self._path = path
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if len(names) != 1:
                raise _Refused("must contain one `data.pkl`, as a file of PyTorch does")
            self._folder = names[0].removesuffix("data.pkl")
            order = f"{self._folder}byteorder"
            if order in archive.namelist() and self._member(archive, order) != b"little":
                raise _Refused("must have little-endian numbers")
            self.content = _Structure(self._member(archive, names[0])).content

    def _member(self, archive, name, size=None):
        """Returns the bytes of a member, which may not be compressed: sizes are then true."""
        info = archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise _Refused(f"must not compress its member {name}")
        if info.header_offset < 0:
            raise _damaged(f"{name} begins before the file")
        if info.file_size != size and (size is not None or info.file_size > LONGEST_PROGRAM):
            raise _damaged(f"{name} has {info.file_size} bytes")
        return archive.read(name)

    def read(self, storage):
        """Returns the numbers of a storage."""
        with zipfile.ZipFile(self._path) as archive:
            name = f"{self._folder}data/{storage.key}"
            try:
                content = self._member(archive, name, storage.bytes)
            except KeyError as error:
                raise _damaged(f"{name} is missing") from error
        return np.frombuffer(content, storage.dtype)


class _Program:
    """A pickle at the position of a file, which is read only up to a limit.

    Args:
        file: The file. It is left at the end of what was read.
    """

    def __init__(self, file):
        self._file, self._left = file, LONGEST_PROGRAM
        self.tell = file.tell

    def read(self, size):
        self._left -= size
        if self._left < 0:
            raise _damaged(f"its pickle has more than {LONGEST_PROGRAM} bytes")
        return self._file.read(size)

    def readline(self):
        line = self._file.readline(max(self._left, 0))
        self._left -= len(line)
        return line


class _Sequence:
    """Pickles and then numbers, as PyTorch wrote them before version 1.6.

    The pickles are a magic number, a version, sizes of C's types, the description and the list of
    the storages' keys. Each storage then has its number of elements in 8 bytes, and its elements.

    Attributes:
        content: What the fourth pickle describes.
    """

    def __init__(self, path):
        self._path, self._begins = path, {}
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if file.read(len(MAGIC)) != MAGIC or _Structure(_Program(file)).content != VERSION:
                raise _Refused("is not a file of PyTorch")
            system = _Structure(_Program(file)).content
            if system.get("little_endian") is not True:
                raise _Refused("must have little-endian numbers")
            structure = _Structure(_Program(file))
            self.content, storages = structure.content, structure.storages
            for key in _Structure(_Program(file)).content:
                count = int.from_bytes(file.read(8), "little")
                begin = file.tell()
                if key not in storages or count != storages[key].count:
                    raise _damaged(f"storage {key!r} has {count} numbers")
                if begin + storages[key].bytes > size:
                    raise _Refused(f"is incomplete: storage {key!r} ends after byte {size}")
                self._begins[key] = begin
                file.seek(storages[key].bytes, os.SEEK_CUR)
            if file.tell() != size or {*storages} != {*self._begins}:
                raise _damaged("its storages are not those that it describes")

    def read(self, storage):
        """Returns the numbers of a storage."""
        with self._path.open("rb") as file:
            file.seek(self._begins[storage.key])
            return np.fromfile(file, storage.dtype, storage.count)


class _Name(str):
    """A function or class that the program names, such as `"torch FloatStorage"`."""


class _Structure:
    """What the program of a pickle builds, without running it.

    Args:
        program: The pickle, bytes or a `_Program`.

    Attributes:
        content: Dictionaries, lists, tuples, numbers, texts and `_Tensor`s.
        storages: Dictionary from keys to the `_Storage`s.
    """

    def __init__(self, program):
        self.storages = {}
        self._stack, self._marks, self._memo = [], [], {}
        for opcode, argument, _ in pickletools.genops(program):
            if opcode.name in VALUES:
                self._stack.append(argument)
            elif opcode.name in STEPS:
                STEPS[opcode.name](self, argument)
            else:
                raise _Refused(f"contains a pickle with the step {opcode.name}, which is not read")
        (self.content,) = self._stack

    def _push(self, value):
        self._stack.append(value)

    def _mark(self, _):
        self._marks.append(len(self._stack))

    def _since_mark(self):
        begin = self._marks.pop()
        values = self._stack[begin:]
        del self._stack[begin:]
        return values

    def _last(self, count):
        if count > len(self._stack):
            raise _damaged("its pickle lacks a value")
        values = self._stack[len(self._stack) - count :]
        del self._stack[len(self._stack) - count :]
        return values

    def _remember(self, key):
        self._memo[len(self._memo) if key is None else key] = self._stack[-1]

    def _name(self, name):
        if name not in NAMES:
            raise _Refused(
                f"was not read: its pickle names {name.replace(' ', '.')}, and only tensors are "
                "read from a pickle"
            )
        self._push(_Name(name))

    def _set(self, pairs):
        target = self._stack[-1]
        if not isinstance(target, dict):
            raise _damaged("its pickle gives a key to a value that is not a dictionary")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if not isinstance(key, str | int):  # comparing deep tuples may take for ever
                raise _damaged("its pickle has a key that is neither a text nor a number")
            target[key] = value

    def _extend(self, values):
        if not isinstance(self._stack[-1], list):
            raise _damaged("its pickle appends to a value that is not a list")
        self._stack[-1].extend(values)

    def _storage(self, _):
        kind, name, key, _, count, *_ = self._stack.pop()
        if kind != "storage" or not isinstance(name, _Name) or not isinstance(key, str):
            raise _damaged("its pickle does not describe a storage as PyTorch does")
        _, _, name = name.partition(" ")
        storage = _Storage(key, name, count)
        if name not in TYPES or type(count) is not int or count < 0:
            raise _damaged(f"a storage has {count!r} numbers of {name}")
        if self.storages.setdefault(key, storage) != storage:
            raise _damaged(f"storage {key} is described twice")
        self._push(storage)

    def _call(self, _):
        """Notes what a function would return: a tensor, a tensor that is trained, a dictionary."""
        function, arguments = self._last(2)
        if not isinstance(function, _Name) or not isinstance(arguments, tuple):
            raise _damaged("its pickle calls a value that is not a function")
        if function == DICTIONARY and len(arguments) < 2:
            self._push({})
            for pair in arguments[0] if arguments else ():  # Python 2 gave pairs
                key, value = pair
                self._set([key, value])
        elif function in TENSORS:
            storage, offset, shape, strides, *_ = arguments
            if not isinstance(storage, _Storage) or not isinstance(shape, tuple):
                raise _damaged("its pickle does not describe a tensor as PyTorch does")
            self._push(_Tensor(storage, offset, shape, tuple(strides)))
        elif function == PARAMETER and isinstance(arguments[0], _Tensor):
            self._push(arguments[0])
        else:
            raise _damaged(f"{function} is called with other arguments than PyTorch gives it")

    def _attributes(self, _):
        """Leaves out attributes: an ordered dictionary of PyTorch has the versions of layers."""
        target, _ = self._last(2)
        if not isinstance(target, dict):
            raise _damaged("its pickle gives attributes to a value that is not a dictionary")
        self._push(target)


VALUES = {
    "BININT", "BININT1", "BININT2", "INT", "LONG1", "LONG4", "BINFLOAT", "UNICODE", "BINUNICODE",
    "SHORT_BINUNICODE", "BINUNICODE8", "BINSTRING", "SHORT_BINSTRING",
}  # fmt: skip
STEPS: dict[str, Any] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda self, _: None),
    "NONE": lambda self, _: self._push(None),
    "NEWTRUE": lambda self, _: self._push(True),
    "NEWFALSE": lambda self, _: self._push(False),
    "EMPTY_DICT": lambda self, _: self._push({}),
    "EMPTY_LIST": lambda self, _: self._push([]),
    "EMPTY_TUPLE": lambda self, _: self._push(()),
    "MARK": _Structure._mark,
    "TUPLE": lambda self, _: self._push(tuple(self._since_mark())),
    "TUPLE1": lambda self, _: self._push(tuple(self._last(1))),
    "TUPLE2": lambda self, _: self._push(tuple(self._last(2))),
    "TUPLE3": lambda self, _: self._push(tuple(self._last(3))),
    "SETITEM": lambda self, _: self._set(self._last(2)),
    "SETITEMS": lambda self, _: self._set(self._since_mark()),
    "APPEND": lambda self, _: self._extend(self._last(1)),
    "APPENDS": lambda self, _: self._extend(self._since_mark()),
    "MEMOIZE": _Structure._remember,
    "BINPUT": _Structure._remember,
    "LONG_BINPUT": _Structure._remember,
    "BINGET": lambda self, key: self._push(self._memo[key]),
    "LONG_BINGET": lambda self, key: self._push(self._memo[key]),
    "GLOBAL": _Structure._name,
    "STACK_GLOBAL": lambda self, _: self._name(" ".join(self._last(2))),
    "BINPERSID": _Structure._storage,
    "REDUCE": _Structure._call,
    "BUILD": _Structure._attributes,
}
