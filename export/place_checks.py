"""Checks of the place of an export, before any work: is it free, writable and large enough."""

import pathlib
import shutil

from keras_transformer.export.errors import ExportError
from keras_transformer.files import draft_of

SAVED_MODEL = "saved_model.pb"
TFLITE = b"TFL3"  # at byte 4 of every .tflite file
BYTES = {"none": 4, "float16": 2, "int8": 1, "int8_static": 1}  # of a weight


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


def check_place_of_versions(directory):
    """Returns the path of a folder of versions to write to, `1`, `2` and so on.

    Raises:
        ExportError: If it holds anything else.
        OSError: If nothing can be written there.
    """
    directory = _folder(directory)
    if (directory / SAVED_MODEL).exists():
        raise ExportError(
            f"{directory} is itself a SavedModel; name the folder above it, which holds the "
            "versions 1, 2 and so on."
        )
    visible = [path for path in listed(directory) if not path.name.startswith(".")]
    if visible and not versions(directory):
        raise ExportError(
            f"{directory} holds other things than versions of a SavedModel ({visible[0].name}, "
            "for example). Choose a new folder."
        )
    _require_writable(directory, directory)
    return directory


def _folder(directory):
    """The path of a folder that may be missing."""
    directory = pathlib.Path(directory)
    if directory.exists() and not directory.is_dir():
        raise ExportError(f"{directory} is a file; a folder is to be written.")
    return directory


def versions(directory):
    """Returns the versions of a SavedModel in a folder, in order."""
    names = [path.name for path in listed(directory) if (path / SAVED_MODEL).exists()]
    return sorted(int(name) for name in names if name.isdecimal())


def check_place_of_folder(directory, names):
    """Returns the path of a folder to write.

    Args:
        directory: The folder.
        names: Set of what a folder of this kind may hold.

    Raises:
        ExportError: If it holds anything else.
        OSError: If nothing can be written there.
    """
    directory = _folder(directory)
    foreign = [path.name for path in listed(directory) if path.name not in names]
    if foreign:
        raise ExportError(
            f"{directory} holds other things than an older export ({foreign[0]}, for example). "
            "Choose a new folder."
        )
    _require_writable(directory, directory.resolve().parent)
    return directory


def check_space(path, pipeline, quantize="none"):
    """Raises unless there is room on the disk for the weights of a `Pipeline`, at least.

    Raises:
        OSError: If there is not.
    """
    needed = BYTES[quantize] * pipeline.model.count_params()
    free = shutil.disk_usage(_existing(pathlib.Path(path).resolve())).free
    if free < needed:
        raise OSError(
            f"{path} cannot be written: the model needs {needed / 1e6:,.1f} MB, and "
            f"{free / 1e6:,.1f} MB are free on that disk."
        )


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


def listed(directory):
    """Returns what is in a folder, in order; nothing if there is no folder."""
    return sorted(directory.iterdir()) if directory.is_dir() else []
