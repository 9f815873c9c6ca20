"""Marian's `.npz`: an uncompressed ZIP file of arrays in NumPy's format."""

import collections
import io
import math
import os
import zipfile

import numpy as np

from keras_transformer.pretrained.files.marian.arrays import SETTINGS

DTYPES = {np.dtype("<f4"), np.dtype("int8")}
NPY = ".npy"
MOST_AXES = 32  # limit of old versions of NumPy


def read_npz(path) -> dict[str, np.ndarray]:
    """Returns a dictionary from names to the arrays of a file.

    Nothing is unpickled, and sizes are checked against the size of the file before arrays are read.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is damaged or of another format; the error is one line that names the
            array.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_members(members, path)
            return {_name(member): _read(archive, member, path) for member in members}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise ValueError(f"{path} is damaged or not a .npz file of Marian: {error}.") from error


def _name(member):
    return member.filename.removesuffix(NPY)


def _check_members(members, path):
    size = os.path.getsize(path)
    for name, count in collections.Counter(map(_name, members)).items():
        if count > 1:
            raise ValueError(f"{path} is damaged: {name} occurs twice.")
    if sum(member.file_size for member in members) > size:
        raise ValueError(
            f"{path} must not be compressed. It is compressed or damaged: its arrays are larger "
            "than the file."
        )


def _read(archive, member, path):
    name = _name(member)
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{path}: {name} must not be compressed, as Marian writes it.")
    with archive.open(member) as file:
        try:
            version = np.lib.format.read_magic(file)
            reader = np.lib.format.read_array_header_1_0
            if version != (1, 0):
                reader = np.lib.format.read_array_header_2_0
            shape, by_columns, dtype = reader(file)
        except ValueError as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise ValueError(f"{path} is damaged: {name}: {reason}.") from error
        if dtype not in DTYPES:
            raise ValueError(f"{path}: {name} must be float32 or int8. Received: {dtype}.")
        content = file.read()  # at most as large as the file
    sizes = all(type(size) is int and size >= 0 for size in shape) and len(shape) <= MOST_AXES
    if not sizes or math.prod(shape) * dtype.itemsize != len(content) or by_columns:
        raise ValueError(
            f"{path} is damaged: {name} must have {len(content)} bytes by rows. "
            f"Received: shape {shape}, {dtype}."
        )
    return np.frombuffer(content, dtype).reshape(shape)


def write_npz(path, arrays) -> None:
    """Writes a file for Marian; equal arrays result in equal bytes.

    Args:
        path: The file.
        arrays: Dictionary from names to arrays of float32, or of int8 for the settings.
    """
    names = sorted(arrays, key=lambda name: (name == SETTINGS, name))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name in names:
            buffer = io.BytesIO()
            array = np.ascontiguousarray(arrays[name])
            np.lib.format.write_array(buffer, array, (1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(name + NPY), buffer.getvalue())
