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

ARCHIVE = b"PK\x03\x04"  # begins a ZIP archive
LONGEST_NAME = 100  # characters of a name in a message
MOST_AXES, MOST_COPIES = 32, 1_000_000
LONGEST_PROGRAM = 64 * 2**20  # bytes; a model with 1,000 tensors has 0.1 million
# A file from before PyTorch 1.6 begins with the pickle of a number, and that of a version.
MAGIC, VERSION = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", 1001
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
            with path.open("rb") as file:
                kind = _Archive if file.read(len(ARCHIVE)) == ARCHIVE else _Sequence
            self._storages = kind(path)
            tensors = self._storages.content
            if not isinstance(tensors, dict) or not tensors:
                raise _Refused("must contain named tensors, a `state_dict`")
            for name, tensor in tensors.items():
                printable = isinstance(name, str) and name.isprintable()
                if not isinstance(tensor, _Tensor) or not printable:
                    rule = "must contain nothing but named tensors, a `state_dict`. Received:"
                    raise _Refused(f"{rule} {_quoted(str(name))}")
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
            raise ValueError(f"{self.path} is damaged: {_quoted(name)} cannot be read.") from error


class _Refused(Exception):
    """A sentence about a file, without its path and full stop.

    It may only contain numbers and what `_quoted` returns: a value of the file may be huge.
    """


def _quoted(text):
    return repr(text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}...")


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
        size = math.prod(self.shape)
        if size and max(self.offset + self._span(), size) > self.storage.count:
            raise _Refused(
                f"must have tensors that fit into their storage. Received: {_quoted(name)} with "
                f"the offset {self.offset}, the shape {self.shape} and the strides {self.strides} "
                f"in {self.storage.count} numbers"
            )

    def _span(self):
        """Number of elements of the storage from the first to the last."""
        steps = zip(self.shape, self.strides, strict=True)
        return 1 + sum((size - 1) * stride for size, stride in steps)

    def values(self, numbers):
        """Returns a float32 array with the values, from all numbers of the storage."""
        if not math.prod(self.shape):
            return np.zeros(self.shape, "float32")
        numbers = numbers[self.offset : self.offset + self._span()]
        if self.storage.type == "BFloat16Storage":  # the upper half of a float32
            numbers = (numbers.astype("<u4") << 16).view("<f4")
        strides = [stride * numbers.itemsize for stride in self.strides]
        view = np.lib.stride_tricks.as_strided(numbers, self.shape, strides)
        with np.errstate(over="ignore"):  # infinite values are refused later
            return np.array(view, "float32")


class _Archive:
    """A ZIP archive with `NAME/data.pkl` and the numbers of each storage in `NAME/data/KEY`.

    Attributes:
        content: What `data.pkl` describes.
    """

    def __init__(self, path):
        self._path, self._newest = path, (None, None)
        if not zipfile.is_zipfile(path):
            raise _Refused("is incomplete: the end of the archive is missing")
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
            names = [name for name in members if name.endswith("/data.pkl")]
            if len(names) != 1 or len({*members}) != len(members):
                raise _Refused("must contain one `data.pkl` and no member twice, as PyTorch does")
            self._folder = names[0].removesuffix("data.pkl")
            order = f"{self._folder}byteorder"
            if order in members and self._member(archive, order) != b"little":
                raise _Refused("must have little-endian numbers")
            self.content = _Structure(self._member(archive, names[0])).content

    def _member(self, archive, name, size=None):
        """Returns the bytes of a member, which may not be compressed: sizes are then true."""
        info = archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise _Refused(f"must not compress its member {_quoted(name)}")
        if info.header_offset < 0:
            raise _damaged(f"{_quoted(name)} begins before the file")
        if info.file_size != size and (size is not None or info.file_size > LONGEST_PROGRAM):
            raise _damaged(f"{_quoted(name)} has {info.file_size} bytes")
        return archive.read(name)

    def read(self, storage):
        """Returns the numbers of a storage. The newest one is kept, for further views of it."""
        key, numbers = self._newest
        if key == storage.key:
            return numbers
        self._newest = None, None
        with zipfile.ZipFile(self._path) as archive:
            name = f"{self._folder}data/{storage.key}"
            if name not in archive.NameToInfo:
                raise _damaged(f"{_quoted(name)} is missing")
            content = self._member(archive, name, storage.bytes)
        numbers = np.frombuffer(content, storage.dtype)
        self._newest = storage.key, numbers
        return numbers


class _Program:
    """A pickle at the position of a file, which is read only up to a limit.

    Args:
        file: The file. It is left at the end of what was read.
    """

    def __init__(self, file):
        self._file, self._left = file, LONGEST_PROGRAM
        self.tell = file.tell

    def read(self, size):
        self._count(size)
        return self._file.read(size)

    def readline(self):
        line = self._file.readline(self._left + 1)
        self._count(len(line))
        return line

    def _count(self, size):
        self._left -= size
        if self._left < 0:
            raise _damaged(f"its pickle has more than {LONGEST_PROGRAM} bytes")


class _Sequence:
    """Pickles and then numbers, as PyTorch wrote them before version 1.6.

    The pickles are a magic number, a version, sizes of C's types, the description and the list of
    the storages' keys. Each storage then has its number of elements in 8 bytes, and its elements.

    Attributes:
        content: What the fourth pickle describes.
    """

    def __init__(self, path):
        self._path, self._begins, self._newest = path, {}, (None, None)
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
                if not isinstance(key, str) or key in self._begins or key not in storages:
                    raise _damaged("its storages are not those that it describes")
                if count != storages[key].count:
                    raise _damaged(f"storage {_quoted(key)} has {count} numbers")
                if begin + storages[key].bytes > size:
                    raise _Refused(f"is incomplete: a storage ends after its {size} bytes")
                self._begins[key] = begin
                file.seek(storages[key].bytes, os.SEEK_CUR)
            if file.tell() != size or {*storages} != {*self._begins}:
                raise _damaged("its storages are not those that it describes")

    def read(self, storage):
        """Returns the numbers of a storage. The newest one is kept, for further views of it."""
        key, numbers = self._newest
        if key != storage.key:
            with self._path.open("rb") as file:
                file.seek(self._begins[storage.key])
                numbers = np.fromfile(file, storage.dtype, storage.count)
            self._newest = storage.key, numbers
        return numbers


def _tensor(storage, offset, shape, strides, trained=False, hooks=None, metadata=None):
    """Returns a `_Tensor` from the arguments of PyTorch's function.

    `metadata` would change values, as the sign of a view of an imaginary part.
    """
    valid = isinstance(storage, _Storage) and isinstance(shape, tuple) and not metadata
    valid = valid and isinstance(strides, tuple) and len(shape) == len(strides) <= MOST_AXES
    numbers = (offset, *shape, *strides) if valid else ()
    if not valid or not all(type(number) is int and number >= 0 for number in numbers):
        raise _damaged("its pickle does not describe a tensor as PyTorch does")
    return _Tensor(storage, offset, shape, strides)


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
        self._stack, self._marks, self._memo, self._copies = [], [], {}, 0
        for opcode, argument, _ in pickletools.genops(program):
            if opcode.name in VALUES:
                if isinstance(argument, int) and argument.bit_length() > 63:
                    raise _damaged("its pickle has a number of more than 64 bits")
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
                f"was not read: its pickle names {_quoted(name.replace(' ', '.'))}, and only "
                "tensors are read from a pickle"
            )
        self._push(_Name(name))

    def _set(self, pairs):
        target = self._stack[-1]
        if not isinstance(target, dict):
            raise _damaged("its pickle gives a key to a value that is not a dictionary")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if not isinstance(key, str | int):  # the comparison of tuples may take for ever
                raise _damaged("its pickle has a key that is neither a text nor a number")
            target[key] = value

    def _extend(self, values):
        if not isinstance(self._stack[-1], list):
            raise _damaged("its pickle appends to a value that is not a list")
        self._stack[-1].extend(values)

    def _storage(self, _):
        kind, name, key, _, count, *view = self._stack.pop()
        valid = isinstance(kind, str) and kind == "storage" and isinstance(name, _Name)
        valid = valid and isinstance(key, str) and type(count) is int and count >= 0
        _, _, name = name.partition(" ") if valid else ("", "", "")
        if name not in TYPES or not all(part is None for part in view):
            raise _damaged("its pickle does not describe a storage as PyTorch does")
        storage = _Storage(key, name, count)
        if self.storages.setdefault(key, storage) != storage:
            raise _damaged(f"storage {_quoted(key)} is described twice")
        self._push(storage)

    def _call(self, _):
        """Notes what a function would return: a tensor, a tensor that is trained, a dictionary."""
        function, arguments = self._last(2)
        if not isinstance(function, _Name) or not isinstance(arguments, tuple):
            raise _damaged("its pickle calls a value that is not a function")
        if function == DICTIONARY and len(arguments) < 2:
            self._push({})
            pairs = arguments[0] if arguments else []  # Python 2 gave pairs
            self._copies += len(pairs)
            if not isinstance(pairs, list) or self._copies > MOST_COPIES:
                raise _damaged("its pickle does not describe a dictionary as PyTorch does")
            for pair in pairs:
                key, value = pair
                self._set([key, value])
        elif function in TENSORS:
            self._push(_tensor(*arguments))
        elif function == PARAMETER and isinstance(arguments[0], _Tensor):
            self._push(arguments[0])
        else:
            raise _damaged("its pickle calls a function with other arguments than PyTorch does")

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
