"""A Marian model file of either form."""

from pathlib import Path

from keras_transformer.pretrained.marian.binary import read_bin
from keras_transformer.pretrained.marian.npz import read_npz

READERS = {".npz": read_npz, ".bin": read_bin}


def read(path):
    """Returns the arrays of a `.npz` or `.bin` file, a dictionary from their names.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is damaged or something else.
    """
    path = Path(path)
    if path.suffix not in READERS:
        raise ValueError(f"`path` must end in {' or '.join(READERS)}. Received: path={path}.")
    return READERS[path.suffix](path)
