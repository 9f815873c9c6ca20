"""Checks of the destination of an export before any work: free, writable, enough disk space."""

import pathlib
import shutil

from keras_transformer.export.errors import ExportError
from keras_transformer.files import draft_of

SAVED_MODEL = "saved_model.pb"
TFLITE = b"TFL3"  # at byte 4 of every .tflite file
BYTES = {"none": 4, "float16": 2, "int8": 1, "int8_static": 1, "int4": 0.5}  # of a weight


def is_tflite(path) -> bool:
    """Returns true if a file begins like a .tflite file."""
    with open(path, "rb") as file:
        return file.read(8)[4:] == TFLITE


def check_place_of_file(path, fits=is_tflite, kind="a .tflite file") -> pathlib.Path:
    """Returns the path of a file to write.

    Args:
        path: The path.
        fits: Function of the path of a file that returns whether it may be replaced.
        kind: Such files as errors call them.

    Raises:
        ExportError: If something other than such a file is there.
        OSError: If nothing can be written there.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        raise ExportError(f"{path} is a folder, but the export is a file.")
    if path.exists() and not fits(path):
        raise ExportError(f"{path} exists and is not {kind}. It is not replaced.")
    _require_writable(path, path.parent)
    return path


def check_place_of_versions(directory) -> pathlib.Path:
    """Returns the path of a folder of versions, `1`, `2` and so on, to which one is added.

    Raises:
        ExportError: If the folder contains something else.
        OSError: If nothing can be written there.
    """
    directory = _folder(directory)
    if (directory / SAVED_MODEL).exists():
        raise ExportError(
            f"{directory} is itself a SavedModel; name the folder above it, which contains the "
            "versions 1, 2 and so on."
        )
    visible = [path for path in listed(directory) if not path.name.startswith(".")]
    if visible and not versions(directory):
        raise ExportError(
            f"{directory} contains something other than versions of a SavedModel "
            f"({visible[0].name}, for example). Choose a new folder."
        )
    _require_writable(directory, directory)
    return directory


def _folder(directory):
    """Returns the path of a folder, which may not exist yet."""
    directory = pathlib.Path(directory)
    if directory.exists() and not directory.is_dir():
        raise ExportError(f"{directory} is a file, but the export is a folder.")
    return directory


def versions(directory) -> list[int]:
    """Returns the numbers of the SavedModel versions in a folder, sorted."""
    names = [path.name for path in listed(directory) if (path / SAVED_MODEL).exists()]
    return sorted(int(name) for name in names if name.isdecimal())


def check_place_of_folder(directory, names) -> pathlib.Path:
    """Returns the path of a folder to write.

    Args:
        directory: The folder.
        names: Set of the names of all files that an export of this kind may contain.

    Raises:
        ExportError: If the folder contains something else.
        OSError: If nothing can be written there.
    """
    directory = _folder(directory)
    foreign = [path.name for path in listed(directory) if path.name not in names]
    if foreign:
        raise ExportError(
            f"{directory} contains something other than an older export ({foreign[0]}, for "
            "example). Choose a new folder."
        )
    _require_writable(directory, directory.resolve().parent)
    return directory


def check_space(path, pipeline, quantize="none") -> None:
    """Checks that the disk has enough free space for the weights of a `Pipeline`.

    Raises:
        OSError: If it does not.
    """
    needed = BYTES[quantize] * pipeline.model.count_params()
    free = shutil.disk_usage(_existing(pathlib.Path(path).resolve())).free
    if free < needed:
        raise OSError(
            f"{path} cannot be written: the model needs {needed / 1e6:,.1f} MB, but only "
            f"{free / 1e6:,.1f} MB are free on the disk."
        )


def _require_writable(path, folder):
    """Raises an `OSError` unless files can be created in a folder, or where it will be created."""
    folder = _existing(folder)
    draft = draft_of(folder / "export")
    try:
        draft.mkdir()
        draft.rmdir()
    except OSError as error:
        raise OSError(
            f"{path} cannot be written: no file can be created in {folder} "
            f"({error.strerror or error}). Choose another path."
        ) from error


def _existing(path):
    """Returns the path, or the nearest folder above it that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def listed(directory) -> list[pathlib.Path]:
    """Returns the sorted paths in a folder, an empty list if it does not exist."""
    return sorted(directory.iterdir()) if directory.is_dir() else []
