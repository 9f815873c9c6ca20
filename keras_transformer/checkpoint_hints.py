"""Hints for a path that is not a run: commands that convert or download another checkpoint."""

import os
import pathlib
import re
import shlex

NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
SAFETENSORS, PYTORCH = "model.safetensors", "pytorch_model.bin"  # files of weights
INDEX = ".index.json"  # after such a name: the index of weights in several files
MARIAN_SUFFIXES = (".npz", ".bin")
RUNS = "runs"  # the documentation's folder of runs; not the owner of a repository
TEXT = " Lines to answer come from stdin or --input: `echo TEXT | keras-transformer predict MODEL`."
WRITTEN = " `keras-transformer train`, `convert` and `export` write such models."
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def hint(path: str | os.PathLike, *, conversion: bool = True) -> str:
    """Returns a sentence that begins with a space and names the next command, or `""`.

    Args:
        path: A path at which the expected run or checkpoint was not found.
        conversion: Whether a checkpoint at `path` must first be converted to a run. `False` if the
            caller reads checkpoints directly.
    """
    path = pathlib.Path(path)
    convert = "`keras-transformer convert {} {} RUN` converts it to a run."
    if path.is_file() and path.suffix in MARIAN_SUFFIXES:
        return f" If it is a Marian model, {convert.format('marian', quoted(path))}" * conversion
    if path.is_dir():
        weights = [name + end for name in (SAFETENSORS, PYTORCH) for end in ("", INDEX)]
        checkpoint = (path / "config.json").is_file()
        checkpoint = checkpoint and any((path / name).is_file() for name in weights)
        if checkpoint and conversion:
            return f" It is a checkpoint: {convert.format('hf', quoted(path))}"
        if (path / "config.toml").is_file() and not conversion:
            return " It is a run: open it with `from_run`."
        return ""
    if repository_name(path) is None:
        if conversion or path.exists() or not NAME.fullmatch(os.fspath(path)):
            return ""
        return f" To download a checkpoint from Hugging Face's hub, name its owner: OWNER/{path}."
    command = f"`hf download {path} --local-dir {path.name}` downloads it."
    if conversion:
        command = (
            f"`keras-transformer convert hf {path} RUN` downloads it and converts it to a run."
        )
    return f" If it is the name of a Hugging Face repository, {command}"


def is_export(path: str | os.PathLike) -> bool:
    """Returns whether the names of files are those of an export that this package opens."""
    path = pathlib.Path(path)
    files = ["saved_model.pb"], ["model.bin", "config.json"]
    found = any(all((path / name).is_file() for name in names) for names in files)
    return found or (path.is_file() and path.suffix in (".tflite", ".onnx"))


def quoted(path: str | os.PathLike) -> str:
    """Returns a path as a word of a shell, for the commands in messages."""
    return shlex.quote(os.fspath(path))


def repository_name(path: str | os.PathLike) -> str | None:
    """Returns the name of a Hugging Face repository that a path may be, or `None`.

    It has the form `owner/name`, and there is no folder `owner` here.

    Args:
        path: A path at which there may be nothing.
    """
    path = pathlib.Path(path)
    ours = path.exists() or path.parent.exists() or path.parent.name == RUNS
    return None if ours or not REPOSITORY.fullmatch(path.as_posix()) else path.as_posix()
