"""Places that commands write to: refused before any work is done, as they were if it fails."""

import contextlib
import os
import pathlib
import shutil

import click

from keras_transformer.files import WRITE_ERRORS


def check_output(path, *suffixes):
    """Refuses the path of a file that cannot be written, before any work is done for it.

    Args:
        path: The path.
        *suffixes: Those that programs recognise the file by; without any, all are.

    Raises:
        click.UsageError: If the suffix is another one.
        ValueError: If the file or its folder cannot be written.
    """
    check_suffix(path, *suffixes)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a regular file: it is not replaced.")
    check_folder(path.parent)


def check_suffix(path, *suffixes):
    """Refuses a path with another suffix than those, if there are any."""
    if suffixes and path.suffix.lower() not in suffixes:
        known = " or ".join(suffixes)
        why = " HDF5 holds weights alone." if path.suffix == ".h5" else ""
        raise click.UsageError(
            f"{path} must end in {known}: programs recognise the file by it.{why}"
        )


def check_folder(path):
    """Refuses a folder in which nothing can be written; it need not exist yet.

    Raises:
        ValueError: If it is a file, or one above it is, or it cannot be written.
    """
    path = pathlib.Path(path)
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder: nothing can be written in it.")
    if not os.access(path, os.W_OK | os.X_OK):
        raise ValueError(f"{path} cannot be written: permission denied.")


@contextlib.contextmanager
def new_folder(path, worth_keeping):
    """Makes a folder for the block, and removes it if the block fails with nothing worth keeping.

    Only what this very call made is removed: never a folder that was there, or that another process
    made meanwhile.

    Args:
        path: The folder; it may exist.
        worth_keeping: Function of the folder: whether it stays anyway.
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
                with contextlib.suppress(OSError):  # somebody uses it by now
                    folder.rmdir()
        raise


def _make(path):
    """The folders that were made, the last of them `path`; none if that was there."""
    if path.is_dir():
        return []
    made = [] if path.parent == path else _make(path.parent)
    try:
        path.mkdir()
    except FileExistsError:
        return []
    return [*made, path]
