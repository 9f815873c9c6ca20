"""Paths that commands write to: early checks, and removal of new folders after a failure."""

import contextlib
import os
import pathlib
import shutil
from collections.abc import Generator

import click

from keras_transformer.files import WRITE_ERRORS


def check_output(path, *suffixes) -> None:
    """Refuses the path of a file that cannot be written.

    Commands call this before they start any work.

    Args:
        path: The path.
        *suffixes: Suffixes by which programs recognise the file. Without any, all are accepted.

    Raises:
        click.UsageError: If the path has another suffix.
        ValueError: If the file or its folder cannot be written.
    """
    check_suffix(path, *suffixes)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a regular file and is not replaced.")
    check_folder(path.parent)


def check_suffix(path, *suffixes) -> None:
    """Refuses a path with a suffix other than `suffixes`, unless these are empty."""
    if suffixes and path.suffix.lower() not in suffixes:
        known = " or ".join(suffixes)
        why = " HDF5 holds only weights." if path.suffix == ".h5" else ""
        raise click.UsageError(
            f"{path} must end in {known}: programs recognise the file by it.{why}"
        )


def check_folder(path) -> None:
    """Refuses a folder in which nothing can be written; it need not exist yet.

    Raises:
        ValueError: If the path or one of its parents is a file, or the folder is not writable.
    """
    path = pathlib.Path(path)
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder: nothing can be written in it.")
    if not os.access(path, os.W_OK | os.X_OK):
        is_read_only = hasattr(os, "statvfs") and os.statvfs(path).f_flag & os.ST_RDONLY
        reason = "it is on a read-only file system" if is_read_only else "permission denied"
        raise ValueError(f"{path} cannot be written: {reason}.")


@contextlib.contextmanager
def new_folder(path, worth_keeping) -> Generator[None]:
    """Creates a folder for the block, and removes it if the block fails.

    Only folders that this call created are removed, never one that existed before or that another
    process created in the meantime.

    Args:
        path: The folder, which may exist.
        worth_keeping: Function of the folder that returns whether to keep it after a failure.
    """
    made = _make(pathlib.Path(path))
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.errno in WRITE_ERRORS and error.filename is None:
            error.filename = str(path)
        if made and not worth_keeping(made[-1]):
            shutil.rmtree(made[-1], ignore_errors=True)
            for folder in reversed(made[:-1]):
                with contextlib.suppress(OSError):  # another process uses it by now
                    folder.rmdir()
        raise


def _make(path):
    """Creates a folder and its parents, and returns those that were missing; the last is `path`."""
    if path.is_dir():
        return []
    made = [] if path.parent == path else _make(path.parent)
    try:
        path.mkdir()
    except FileExistsError:
        return []
    return [*made, path]
