"""The metadata of a SavedModel that no signature keeps, such as its beam or names of columns."""

import json

from keras_transformer.decoding.search import as_dict, from_dict
from keras_transformer.files import read_json

PATH = "assets.extra/facts.json"
ORIGIN, README = "assets.extra/origin.json", "README.md"
SEARCH = "assets.extra/search.json"


def write_origin(folder, origin):
    """Keeps what is known of a checkpoint that the weights come from in the folder of a version.

    Args:
        folder: The folder, with a `README.md`.
        origin: A dictionary, or nothing.
    """
    if not origin:
        return
    (folder / ORIGIN).parent.mkdir(exist_ok=True)
    (folder / ORIGIN).write_text(json.dumps(origin, indent=2, ensure_ascii=False) + "\n", "utf-8")
    known = "\n".join(f"- {name}: {value}" for name, value in origin.items() if value)
    with (folder / README).open("a", encoding="utf-8") as file:
        file.write(f"\n## Origin of the weights\n\n{known}\n")


def write_beam(folder, beam):
    """Keeps the `Beam` of the signatures with one in the folder of a version."""
    (folder / SEARCH).write_text(json.dumps(as_dict(beam), indent=2) + "\n", "utf-8")


def read_beam(folder):
    """Returns the `Beam` of the signatures of a version, or `None` if it is not known.

    Raises:
        ValueError: If the file is damaged.
    """
    return read_json(folder / SEARCH, from_dict)


def write_codec(folder, codec):
    """Writes what a `Codec` needs into the folder of a version."""
    if metadata := codec.line_metadata():
        path = folder / PATH
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(metadata, indent=2) + "\n", "utf-8")


def read_codec(folder, codec_class):
    """Returns the `Codec` of a version; its class, where a class is all that its answers need.

    Args:
        folder: The folder of the version, a `pathlib.Path`.
        codec_class: The class of the codec.

    Raises:
        ValueError: If its metadata is needed and missing, or damaged.
    """
    path = folder / PATH
    try:
        return codec_class.of_lines(json.loads(path.read_text("utf-8")) if path.exists() else {})
    except (OSError, ValueError, KeyError, TypeError) as error:
        if not path.exists():
            raise ValueError(
                f"{folder} has no {PATH}, which holds the names of columns and the length of a "
                "window. Export it again."
            ) from None
        raise ValueError(f"{path} cannot be read ({error!r}). Export it again.") from error
