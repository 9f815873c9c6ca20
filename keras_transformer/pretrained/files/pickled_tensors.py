"""The tensors that a pickle of PyTorch describes, found without running the pickle.

A pickle is a program, and unpickling it may run anything. `pickletools` of the standard library
splits the program into steps, and `Structure` follows only steps that build dictionaries, lists,
tuples, numbers and texts. A step may name one of the functions of PyTorch that describe a tensor.
`Structure` imports no such name, and refuses all other names.
"""

import math
import pickletools
from typing import Any, NamedTuple

import numpy as np

LONGEST_NAME = 100  # characters of a name in a message
MOST_AXES, MOST_COPIES = 32, 1_000_000
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


class Refused(Exception):
    """A sentence about a file, without its path and full stop.

    It may only contain numbers and what `quoted` returns: a value of the file may be huge.
    """


def quoted(text) -> str:
    """Returns a text of a file for a message: in one line, quoted and shortened."""
    return repr(text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}...")


def damaged(reason) -> Refused:
    """Returns the refusal of a damaged file."""
    return Refused(f"is damaged: {reason}")


class Storage(NamedTuple):
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


class TensorView(NamedTuple):
    """A view of a storage."""

    storage: Storage
    offset: int
    shape: tuple
    strides: tuple

    def check(self, name):
        """Refuses a view that leaves its storage, or would be larger than it."""
        size = math.prod(self.shape)
        if size and max(self.offset + self._span(), size) > self.storage.count:
            raise Refused(
                f"must have tensors that fit into their storage. Received: {quoted(name)} with "
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


def _tensor(storage, offset, shape, strides, trained=False, hooks=None, metadata=None):
    """Returns a `TensorView` from the arguments of PyTorch's function.

    `metadata` would change values, as the sign of a view of an imaginary part.
    """
    valid = isinstance(storage, Storage) and isinstance(shape, tuple) and not metadata
    valid = valid and isinstance(strides, tuple) and len(shape) == len(strides) <= MOST_AXES
    numbers = (offset, *shape, *strides) if valid else ()
    if not valid or not all(type(number) is int and number >= 0 for number in numbers):
        raise damaged("its pickle does not describe a tensor as PyTorch does")
    return TensorView(storage, offset, shape, strides)


class _Name(str):
    """A function or class that the program names, such as `"torch FloatStorage"`."""


class Structure:
    """The values that the program of a pickle would build, found without running it.

    Args:
        program: The pickle, bytes or a `_Program`.

    Attributes:
        content: Dictionaries, lists, tuples, numbers, texts and `TensorView`s.
        storages: Dictionary from keys to the `Storage`s.
    """

    def __init__(self, program):
        self.storages = {}
        self._stack, self._marks, self._memo, self._copies = [], [], {}, 0
        for opcode, argument, _ in pickletools.genops(program):
            if opcode.name in VALUES:
                if isinstance(argument, int) and argument.bit_length() > 63:
                    raise damaged("its pickle has a number of more than 64 bits")
                self._stack.append(argument)
            elif opcode.name in STEPS:
                STEPS[opcode.name](self, argument)
            else:
                raise Refused(f"contains a pickle with the step {opcode.name}, which is not read")
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
            raise damaged("its pickle lacks a value")
        values = self._stack[len(self._stack) - count :]
        del self._stack[len(self._stack) - count :]
        return values

    def _remember(self, key):
        self._memo[len(self._memo) if key is None else key] = self._stack[-1]

    def _name(self, name):
        if name not in NAMES:
            raise Refused(
                f"was not read: its pickle names {quoted(name.replace(' ', '.'))}, and only "
                "tensors are read from a pickle"
            )
        self._push(_Name(name))

    def _set(self, pairs):
        target = self._stack[-1]
        if not isinstance(target, dict):
            raise damaged("its pickle gives a key to a value that is not a dictionary")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if not isinstance(key, str | int):  # the comparison of tuples may take for ever
                raise damaged("its pickle has a key that is neither a text nor a number")
            target[key] = value

    def _extend(self, values):
        if not isinstance(self._stack[-1], list):
            raise damaged("its pickle appends to a value that is not a list")
        self._stack[-1].extend(values)

    def _storage(self, _):
        kind, name, key, _, count, *view = self._stack.pop()
        valid = isinstance(kind, str) and kind == "storage" and isinstance(name, _Name)
        valid = valid and isinstance(key, str) and type(count) is int and count >= 0
        _, _, name = name.partition(" ") if valid else ("", "", "")
        if name not in TYPES or not all(part is None for part in view):
            raise damaged("its pickle does not describe a storage as PyTorch does")
        storage = Storage(key, name, count)
        if self.storages.setdefault(key, storage) != storage:
            raise damaged(f"storage {quoted(key)} is described twice")
        self._push(storage)

    def _call(self, _):
        """Notes what a function would return: a tensor, a tensor that is trained, a dictionary."""
        function, arguments = self._last(2)
        if not isinstance(function, _Name) or not isinstance(arguments, tuple):
            raise damaged("its pickle calls a value that is not a function")
        if function == DICTIONARY and len(arguments) < 2:
            self._push({})
            pairs = arguments[0] if arguments else []  # Python 2 gave pairs
            self._copies += len(pairs)
            if not isinstance(pairs, list) or self._copies > MOST_COPIES:
                raise damaged("its pickle does not describe a dictionary as PyTorch does")
            for pair in pairs:
                key, value = pair
                self._set([key, value])
        elif function in TENSORS:
            self._push(_tensor(*arguments))
        elif function == PARAMETER and isinstance(arguments[0], TensorView):
            self._push(arguments[0])
        else:
            raise damaged("its pickle calls a function with other arguments than PyTorch does")

    def _attributes(self, _):
        """Leaves out attributes: an ordered dictionary of PyTorch has the versions of layers."""
        target, _ = self._last(2)
        if not isinstance(target, dict):
            raise damaged("its pickle gives attributes to a value that is not a dictionary")
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
    "MARK": Structure._mark,
    "TUPLE": lambda self, _: self._push(tuple(self._since_mark())),
    "TUPLE1": lambda self, _: self._push(tuple(self._last(1))),
    "TUPLE2": lambda self, _: self._push(tuple(self._last(2))),
    "TUPLE3": lambda self, _: self._push(tuple(self._last(3))),
    "SETITEM": lambda self, _: self._set(self._last(2)),
    "SETITEMS": lambda self, _: self._set(self._since_mark()),
    "APPEND": lambda self, _: self._extend(self._last(1)),
    "APPENDS": lambda self, _: self._extend(self._since_mark()),
    "MEMOIZE": Structure._remember,
    "BINPUT": Structure._remember,
    "LONG_BINPUT": Structure._remember,
    "BINGET": lambda self, key: self._push(self._memo[key]),
    "LONG_BINGET": lambda self, key: self._push(self._memo[key]),
    "GLOBAL": Structure._name,
    "STACK_GLOBAL": lambda self, _: self._name(" ".join(self._last(2))),
    "BINPERSID": Structure._storage,
    "REDUCE": Structure._call,
    "BUILD": Structure._attributes,
}
