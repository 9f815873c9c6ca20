"""Metadata of a SavedModel that its signatures do not contain, such as the beam's settings."""

import json
from typing import Any

from keras_transformer.decoding.stored import as_dict, from_dict
from keras_transformer.files import json_text, read_json

PATH = "assets.extra/metadata.json"
ORIGIN, README = "assets.extra/origin.json", "README.md"
SEARCH = "assets.extra/search.json"


def write_origin(folder, origin) -> None:
    """Writes the provenance of the weights into the folder of a version and into its README.

    Args:
        folder: The folder, with a `README.md`.
        origin: Provenance of the original checkpoint, a dictionary, or `None`.
    """
    if not origin:
        return
    _write(folder / ORIGIN, origin)
    known = "\n".join(f"- {name}: {value}" for name, value in origin.items() if value)
    with (folder / README).open("a", encoding="utf-8") as file:
        file.write(f"\n## Origin of the weights\n\n{known}\n")


def write_beam(folder, beam) -> None:
    """Writes the `Beam` of the signatures into the folder of a version."""
    _write(folder / SEARCH, as_dict(beam))


def read_beam(folder) -> Any:
    """Returns the `Beam` of the signatures of a version, or `None` if there is no file of it.

    Raises:
        ValueError: If the file is damaged.
    """
    return read_json(folder / SEARCH, from_dict)


def write_codec(folder, codec) -> None:
    """Writes the metadata of a `Codec`, if it has any, into the folder of a version."""
    if metadata := codec.line_metadata():
        _write(folder / PATH, metadata)


def _write(path, values):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json_text(values) + "\n", "utf-8")


def read_codec(folder, codec_class) -> Any:
    """Returns the `Codec` of a version, or its class if the codec needs no metadata.

    Args:
        folder: Folder of the version, a `pathlib.Path`.
        codec_class: Class of the codec.

    Raises:
        ValueError: If the metadata is damaged, or is needed and missing.
    """
    path = folder / PATH
    try:
        return codec_class.of_lines(json.loads(path.read_text("utf-8")) if path.exists() else {})
    except (OSError, ValueError, KeyError, TypeError) as error:
        if not path.exists():
            raise ValueError(
                f"{folder} has no {PATH}, which contains the names of columns and the length of a "
                "window. Export it again."
            ) from None
        raise ValueError(f"{path} cannot be read ({error!r}). Export it again.") from error
