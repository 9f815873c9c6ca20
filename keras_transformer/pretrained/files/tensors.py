"""Opening of the tensors in a folder, in one or several `safetensors` files."""

from typing import Any

from keras_transformer.pretrained.files.safetensors_file import SafetensorsFile
from keras_transformer.pretrained.files.sharded_safetensors import ShardedSafetensors

WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"  # index of weights in several files
PICKLED = "pytorch_model.bin"
CONVERSION = (
    'python -c "import sys; from transformers import {kind} as M; '
    'M.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[1])" {path}'
)


def open_tensors(folder, kind) -> Any:
    """Returns the tensors in a folder, a `SafetensorsFile` or `ShardedSafetensors`.

    Args:
        folder: A `CheckpointFolder`.
        kind: Name of the class of `transformers` that reads such a folder.

    Raises:
        ValueError: If there are none, or only in another format; the error names a remedy.
    """
    path = folder.file(WEIGHTS)
    if path is not None:
        return SafetensorsFile(path)
    if folder.file(INDEX) is not None:
        return ShardedSafetensors(folder, INDEX)
    if folder.file(PICKLED) is not None:
        raise ValueError(
            f"{folder.path / PICKLED} is a pickle, which may run any program when it is read, and "
            "is not read. If you trust it, convert it: "
            f"{CONVERSION.format(kind=kind, path=folder.path)}"
        )
    folder.require(WEIGHTS)
