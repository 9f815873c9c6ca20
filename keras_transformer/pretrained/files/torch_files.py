"""Files of tensors that PyTorch wrote, such as `pytorch_model.bin`. PyTorch is not needed.

`torch.save` writes a ZIP archive or, before PyTorch 1.6 of 2020, several pickles followed by the
values of the tensors. Nothing is unpickled: see `pickled_tensors`. Sizes are checked against the
size of the file before memory is allocated.
"""

import os
import struct
import zipfile

import numpy as np

from keras_transformer.pretrained.files.pickled_tensors import (
    TYPES,
    Refused,
    Structure,
    TensorView,
    damaged,
    quoted,
)

ARCHIVE = b"PK\x03\x04"  # begins a ZIP archive
LONGEST_PROGRAM = 64 * 2**20  # bytes; a model with 1,000 tensors has 0.1 million
# A file from before PyTorch 1.6 begins with the pickle of a number, and that of a version.
MAGIC, VERSION = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", 1001
# What a damaged archive or program raises.
DAMAGE = (
    *(ValueError, TypeError, LookupError, AttributeError, OverflowError, EOFError, RuntimeError),
    *(zipfile.BadZipFile, struct.error),
)


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
                raise Refused("must contain named tensors, a `state_dict`")
            for name, tensor in tensors.items():
                printable = isinstance(name, str) and name.isprintable()
                if not isinstance(tensor, TensorView) or not printable:
                    rule = "must contain nothing but named tensors, a `state_dict`. Received:"
                    raise Refused(f"{rule} {quoted(str(name))}")
                tensor.check(name)
        except Refused as error:
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
        except Refused as error:
            raise ValueError(f"{self.path} {error}.") from error
        except DAMAGE as error:
            raise ValueError(f"{self.path} is damaged: {quoted(name)} cannot be read.") from error


class _Archive:
    """A ZIP archive with `NAME/data.pkl` and the numbers of each storage in `NAME/data/KEY`.

    Attributes:
        content: What `data.pkl` describes.
    """

    def __init__(self, path):
        self._path, self._newest = path, (None, None)
        if not zipfile.is_zipfile(path):
            raise Refused("is incomplete: the end of the archive is missing")
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
            names = [name for name in members if name.endswith("/data.pkl")]
            if len(names) != 1 or len({*members}) != len(members):
                raise Refused("must contain one `data.pkl` and no member twice, as PyTorch does")
            self._folder = names[0].removesuffix("data.pkl")
            order = f"{self._folder}byteorder"
            if order in members and self._member(archive, order) != b"little":
                raise Refused("must have little-endian numbers")
            self.content = Structure(self._member(archive, names[0])).content

    def _member(self, archive, name, size=None):
        """Returns the bytes of a member, which may not be compressed: sizes are then true."""
        info = archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise Refused(f"must not compress its member {quoted(name)}")
        if info.header_offset < 0:
            raise damaged(f"{quoted(name)} begins before the file")
        if info.file_size != size and (size is not None or info.file_size > LONGEST_PROGRAM):
            raise damaged(f"{quoted(name)} has {info.file_size} bytes")
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
                raise damaged(f"{quoted(name)} is missing")
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
            raise damaged(f"its pickle has more than {LONGEST_PROGRAM} bytes")


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
            if file.read(len(MAGIC)) != MAGIC or Structure(_Program(file)).content != VERSION:
                raise Refused("is not a file of PyTorch")
            system = Structure(_Program(file)).content
            if system.get("little_endian") is not True:
                raise Refused("must have little-endian numbers")
            structure = Structure(_Program(file))
            self.content, storages = structure.content, structure.storages
            for key in Structure(_Program(file)).content:
                count = int.from_bytes(file.read(8), "little")
                begin = file.tell()
                if not isinstance(key, str) or key in self._begins or key not in storages:
                    raise damaged("its storages are not those that it describes")
                if count != storages[key].count:
                    raise damaged(f"storage {quoted(key)} has {count} numbers")
                if begin + storages[key].bytes > size:
                    raise Refused(f"is incomplete: a storage ends after its {size} bytes")
                self._begins[key] = begin
                file.seek(storages[key].bytes, os.SEEK_CUR)
            if file.tell() != size or {*storages} != {*self._begins}:
                raise damaged("its storages are not those that it describes")

    def read(self, storage):
        """Returns the numbers of a storage. The newest one is kept, for further views of it."""
        key, numbers = self._newest
        if key != storage.key:
            with self._path.open("rb") as file:
                file.seek(self._begins[storage.key])
                numbers = np.fromfile(file, storage.dtype, storage.count)
            self._newest = storage.key, numbers
        return numbers
