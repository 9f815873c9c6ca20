"""A Marian model file of either form."""

from pathlib import Path

from keras_transformer.pretrained.marian.binary import read_bin
from keras_transformer.pretrained.marian.npz import read_npz

SOURCES = ("source", "src")  # begin the name of the vocabulary of sources
READERS = {".npz": read_npz, ".bin": read_bin}


def vocabularies_beside(path):
    """Returns the SentencePiece files of a model, those in its folder: one, or source and target.

    Of two that of the source is `source.spm` or begins with `src`, as in browsers.

    Raises:
        ValueError: If there is none, or it is not clear which they are.
    """
    path = Path(path)
    files = sorted(path.parent.glob("*.spm"), key=lambda file: not file.name.startswith(SOURCES))
    clear = len(files) == 1 or [file.name.startswith(SOURCES) for file in files] == [True, False]
    if not clear:
        names = ", ".join(file.name for file in files) or "none"
        raise ValueError(
            f"{path} must have one vocabulary beside it, a .spm file, or source.spm and target.spm."
            f" Received: {names}."
        )
    return files


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
