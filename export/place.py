"""Atomic writing of exports: the destination is replaced completely, or left as it was."""

import contextlib
import functools
import os
import pathlib
import shutil
from typing import Any

import tensorflow as tf

from keras_transformer.export.place_checks import listed
from keras_transformer.files import draft_of, remove_stale_drafts, replacing, stale_drafts, sync

REPLACED = ".replaced"  # suffix of the draft name under which an older export is moved aside


def silent(stage) -> None:
    """Ignores a stage: the `progress` of an export that shows none."""


def place_file(path, write) -> Any:
    """Calls `write` with a temporary path beside `path` and then moves the file to `path`.

    If `write` raises an error, `path` is left unchanged and the temporary file is removed.

    Returns:
        The result of `write`.
    """
    with _folder(path.parent), replacing(path) as draft:
        return write(draft)


def place_version(directory, write) -> tuple[pathlib.Path, Any]:
    """Calls `write` with a temporary folder and then makes that the next version.

    If `write` raises an error, `directory` is left unchanged.

    Returns:
        The path of the version, and the result of `write`.
    """
    draft = draft_of(directory / "export")  # TensorFlow Serving ignores names other than numbers
    with _folder(directory):
        remove_stale_drafts(directory)
        return _fill(draft, write, functools.partial(_move_to_next_version, directory=directory))


def place_folder(directory, write) -> Any:
    """Calls `write` with a temporary folder beside `directory` and then moves it there.

    If `write` raises an error, `directory` is left unchanged and the temporary folder is removed.

    Returns:
        The result of `write`.
    """
    directory = directory.resolve()
    draft = draft_of(directory)
    with _folder(directory.parent):
        _put_back(directory)
        remove_stale_drafts(directory.parent)
        return _fill(draft, write, functools.partial(_replace_folder, directory=directory))[1]


def _fill(draft, write, move):
    """Creates a folder, fills it with `write`, moves it with `move`; returns both results."""
    try:
        draft.mkdir()
        result = write(draft)
        for file in draft.rglob("*"):
            sync(file)
        return move(draft), result
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _put_back(directory):
    """Restores a missing folder that a process had moved aside before it was killed."""
    for path in stale_drafts(directory.parent):
        ours = path.name.startswith(f".{directory.name}.draft-") and path.suffix == REPLACED
        if ours and not directory.exists():
            os.rename(path, directory)


def _replace_folder(draft, directory):
    # A folder that is not empty cannot be replaced in one step, so the old one is moved aside.
    old = draft_of(directory.with_name(directory.name + REPLACED))
    try:
        while True:
            with contextlib.suppress(FileNotFoundError):
                os.rename(directory, old)
            try:
                os.rename(draft, directory)
                break
            except OSError:
                if not directory.exists():
                    raise
            # Another export was put there meanwhile: it is replaced, the newest one last.
            shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        if old.exists() and not directory.exists():
            os.rename(old, directory)
        raise
    shutil.rmtree(old, ignore_errors=True)


def save(module, folder, signatures) -> None:
    """Writes a SavedModel.

    Raises:
        OSError: If it cannot be written.
    """
    try:
        tf.saved_model.save(module, str(folder), signatures=signatures)
    except tf.errors.OpError as error:
        reason = error.message.partition("\n")[0].rpartition("; ")[2].partition(" [Op:")[0]
        raise OSError(f"{folder.parent} cannot be written to: {reason}") from error


def _move_to_next_version(draft, directory):
    while True:
        # Above every number, whether it is a version or not, so that nothing is replaced.
        numbers = [int(path.name) for path in listed(directory) if path.name.isdecimal()]
        version = directory / str(max(numbers, default=0) + 1)
        try:
            os.rename(draft, version)
            return version
        except OSError:
            if not version.exists():  # otherwise another process was faster: tries the next number
                raise


@contextlib.contextmanager
def _folder(path):
    """Creates a folder and the missing ones above it; removes them if the block raises an error."""
    made = []
    while not path.exists():
        made.append(path)
        path = path.parent
    try:
        for folder in reversed(made):
            folder.mkdir(exist_ok=True)
        yield
    except BaseException:
        for folder in made:
            with contextlib.suppress(OSError):  # another process may use it by now
                folder.rmdir()
        raise
