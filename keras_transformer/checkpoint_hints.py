"""The next command for a path that is no run but a checkpoint of another project, or its name."""

import pathlib
import re

WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
OF_MARIAN = (".npz", ".bin")
RUNS = "runs"  # the folder of the runs in the documents, and no owner of a repository
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def hint(path, *, conversion=True):
    """Returns a sentence with the next command, after a space; empty where none is known.

    Args:
        path: A path at which there is not what was looked for.
        conversion: Whether a checkpoint that is there must be converted. `False`: it is being read.
    """
    path = pathlib.Path(path)
    convert = "`keras-transformer convert {} {} RUN` makes a run of it."
    if path.is_file() and path.suffix in OF_MARIAN:
        return f" If it is a model of Marian, {convert.format('marian', path)}" * conversion
    if path.is_dir():
        checkpoint = (path / "config.json").is_file()
        checkpoint = checkpoint and any((path / name).is_file() for name in WEIGHTS)
        if checkpoint and conversion:
            return f" It is a checkpoint: {convert.format('hf', path)}"
        if (path / "config.toml").is_file() and not conversion:
            return " It is a run: `from_run` opens it."
        return ""
    ours = path.exists() or path.parent.exists() or path.parent.name == RUNS
    if ours or not REPOSITORY.fullmatch(str(path)):
        return ""
    then = f", and {convert.format('hf', path.name)}" if conversion else "."
    return (
        " If it is the name of a repository of Hugging Face, "
        f"`hf download {path} --local-dir {path.name}` downloads it{then}"
    )
