"""Metadata of a SavedModel that its signatures do not contain, such as the beam's settings."""

import json
from typing import Any

from keras_transformer.decoding.stored import as_dict, from_dict
from keras_transformer.export.metadata import reading
from keras_transformer.files import json_text, read_json
from keras_transformer.text.tokenizers import Tokenizers

PATH = "assets.extra/metadata.json"
TASK = "task"  # key of the name of the task
ORIGIN, README = "assets.extra/origin.json", "README.md"
SEARCH = "assets.extra/search.json"
CODEC, VOCABULARY = "assets.extra/codec.json", "assets.extra/vocabulary"  # a file and a folder


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


def write_task(folder, task, codec=None) -> None:
    """Writes the name of a task, and the metadata of a `Codec`, into the folder of a version."""
    metadata = {} if codec is None else codec.line_metadata()
    _write(folder / PATH, {TASK: task, **metadata})


def write_codec(folder, codec, tokenizers) -> None:
    """Writes the whole metadata of a `Codec` and its tokenizers into the folder of a version."""
    _write(folder / CODEC, codec.metadata())
    place = folder / VOCABULARY
    place.mkdir()
    for name, content in tokenizers.files().items():
        (place / name).write_bytes(content)


def read_stored_codec(folder, codec_class) -> Any:
    """Returns the `Codec` that `write_codec` has written, or `None`.

    Args:
        folder, codec_class: See `read_codec`.

    Raises:
        ValueError: If a file is damaged or missing.
    """
    path, place = folder / CODEC, folder / VOCABULARY
    if not path.exists():
        return None

    def read(name):
        file = place / name
        return file.read_bytes() if file.exists() else None

    with reading(folder, CODEC):
        return codec_class.from_metadata(
            json.loads(path.read_text("utf-8")), Tokenizers.from_files(read)
        )


def read_task(folder) -> str | None:
    """Returns the name of the task of a version; `None` if the folder does not name one.

    Raises:
        ValueError: If the metadata is damaged.
    """
    metadata = read_json(folder / PATH)
    return metadata.get(TASK) if isinstance(metadata, dict) else None


def _write(path, values):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json_text(values) + "\n", "utf-8")


def read_codec(folder, codec_class) -> Any:
    """Returns the `Codec` of a version, or its class if the codec needs no metadata.

    Args:
        folder: Folder of the version, a `pathlib.Path`.
        codec_class: Class of the codec.

    Raises:
        ValueError: If the metadata is damaged.
    """
    path = folder / PATH
    try:
        metadata = json.loads(path.read_text("utf-8"))
        return codec_class.of_lines({key: metadata[key] for key in metadata if key != TASK})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} cannot be read ({error!r}). Export it again.") from error
