"""The place of an export: filled whole and checked, or not at all."""

import contextlib
import os
import pathlib
import shutil

import tensorflow as tf

from keras_transformer.export.parity import ExportError
from keras_transformer.files import (
    draft_of,
    remove_stale_drafts,
    replacing,
    stale_drafts,
    sync,
)

SAVED_MODEL = "saved_model.pb"
TFLITE = b"TFL3"  # at byte 4 of every .tflite file
REPLACED = ".replaced"  # what is at a place steps aside under a draft's name with this suffix
BYTES = {"none": 4, "float16": 2, "int8": 1, "int8_static": 1}  # of a weight


def silent(stage):
    """Shows nothing: the `progress` of an export without any."""


def check_place_of_file(path):
    """Returns the path of a .tflite file to write.

    Raises:
        ExportError: If something other than a .tflite file is there.
        OSError: If nothing can be written there.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        raise ExportError(f"{path} is a folder; a file is to be written.")
    if path.exists() and not is_tflite(path):
        raise ExportError(f"{path} exists and is not a .tflite file. It is left as it is.")
    _require_writable(path, path.parent)
    return path


def is_tflite(path):
    """Returns whether a file begins as a .tflite file does."""
    with open(path, "rb") as file:
        return file.read(8)[4:] == TFLITE


def place_file(path, write):
    """Calls `write` with a temporary path beside `path` and then moves the file to `path`.

    If `write` raises, whatever was at `path` stays, and nothing else does.

    Returns:
        What `write` returned.
    """
    with _folder(path.parent), replacing(path) as draft:
        return write(draft)


def check_place_of_versions(directory):
    """Returns the path of a folder of versions to write to, `1`, `2` and so on.

    Raises:
        ExportError: If it holds anything else.
        OSError: If nothing can be written there.
    """
    directory = pathlib.Path(directory)
    if directory.exists() and not directory.is_dir():
        raise ExportError(f"{directory} is a file; a folder is to be written.")
    if (directory / SAVED_MODEL).exists():
        raise ExportError(
            f"{directory} is itself a SavedModel; name the folder above it, which holds the "
            "versions 1, 2 and so on."
        )
    visible = [path for path in _list(directory) if not path.name.startswith(".")]
    if visible and not versions(directory):
        raise ExportError(
            f"{directory} holds other things than versions of a SavedModel ({visible[0].name}, "
            "for example). Choose a new folder."
        )
    _require_writable(directory, directory)
    return directory


def versions(directory):
    """Returns the versions of a SavedModel in a folder, in order."""
    names = [path.name for path in _list(directory) if (path / SAVED_MODEL).exists()]
    return sorted(int(name) for name in names if name.isdecimal())


def place_version(directory, write):
    """Calls `write` with a temporary folder and then moves that to the next version.

    If `write` raises, `directory` is as it was before.

    Returns:
        The path of the version and what `write` returned.
    """
    # TensorFlow Serving looks at numbers only.
    draft = draft_of(directory / "export")
    with _folder(directory):
        remove_stale_drafts(directory)
        try:
            draft.mkdir()
            result = write(draft)
            for file in draft.rglob("*"):
                sync(file)
            return _move_to_next_version(draft, directory), result
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def check_place_of_folder(directory, names):
    """Returns the path of a folder to write.

    Args:
        directory: The folder.
        names: Set of what a folder of this kind may hold.

    Raises:
        ExportError: If it holds anything else.
        OSError: If nothing can be written there.
    """
    directory = pathlib.Path(directory)
    if directory.exists() and not directory.is_dir():
        raise ExportError(f"{directory} is a file; a folder is to be written.")
    foreign = [path.name for path in _list(directory) if path.name not in names]
    if foreign:
        raise ExportError(
            f"{directory} holds other things than an older export ({foreign[0]}, for example). "
            "Choose a new folder."
        )
    _require_writable(directory, directory.resolve().parent)
    return directory


def check_space(path, translator, quantize="none"):
    """Raises unless there is room on the disk for the weights of a `Translator`, at least.

    Raises:
        OSError: If there is not.
    """
    needed = BYTES[quantize] * translator.model.count_params()
    free = shutil.disk_usage(_existing(pathlib.Path(path).resolve())).free
    if free < needed:
        raise OSError(
            f"{path} cannot be written: the model needs {needed / 1e6:,.1f} MB, and "
            f"{free / 1e6:,.1f} MB are free on that disk."
        )


def place_folder(directory, write):
    """Calls `write` with a temporary folder beside `directory` and then moves it there.

    If `write` raises, whatever was at `directory` stays, and nothing else does.

    Returns:
        What `write` returned.
    """
    directory = directory.resolve()
    draft = draft_of(directory)
    with _folder(directory.parent):
        _put_back(directory)
        remove_stale_drafts(directory.parent)
        try:
            draft.mkdir()
            result = write(draft)
            for file in draft.rglob("*"):
                sync(file)
            _replace_folder(draft, directory)
            return result
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _put_back(directory):
    """Puts a folder back that a process moved aside before it was killed, if it is missing."""
    for path in stale_drafts(directory.parent):
        ours = path.name.startswith(f".{directory.name}.draft-") and path.suffix == REPLACED
        if ours and not directory.exists():
            os.rename(path, directory)


def _replace_folder(draft, directory):
    # A folder that is not empty cannot be replaced in one step: the old one steps aside.
    old = draft_of(directory.with_name(directory.name + REPLACED))
    if directory.exists():
        os.rename(directory, old)
    try:
        os.rename(draft, directory)
    except BaseException:
        if old.exists():
            os.rename(old, directory)
        raise
    shutil.rmtree(old, ignore_errors=True)


def save(module, folder, signatures):
    """Writes a SavedModel.

    Raises:
        OSError: If it cannot be written.
    """
    try:
        tf.saved_model.save(module, str(folder), signatures=signatures)
    except tf.errors.OpError as error:
        reason = error.message.partition("\n")[0].rpartition("; ")[2]
        raise OSError(f"{folder.parent} cannot be written to: {reason}") from error


def _move_to_next_version(draft, directory):
    while True:
        # After everything with a number, be it a version or not: what is there is not replaced.
        numbers = [int(path.name) for path in _list(directory) if path.name.isdecimal()]
        version = directory / str(max(numbers, default=0) + 1)
        try:
            os.rename(draft, version)
            return version
        except OSError:
            if not version.exists():  # otherwise somebody else was faster: take the next one
                raise


def _require_writable(path, folder):
    """Raises unless a draft can be made in a folder, or where the folder is to be made."""
    folder = _existing(folder)
    draft = draft_of(folder / "export")
    try:
        draft.mkdir()
        draft.rmdir()
    except OSError as error:
        raise OSError(
            f"{path} cannot be written: nothing can be made in {folder} "
            f"({error.strerror or error}). Choose another place."
        ) from error


def _existing(path):
    """The path, or the nearest folder above it that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


@contextlib.contextmanager
def _folder(path):
    """Makes a folder, and unmakes it if the block raises."""
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
            with contextlib.suppress(OSError):  # somebody else uses it by now
                folder.rmdir()
        raise


def _list(directory):
    return sorted(directory.iterdir()) if directory.is_dir() else []
