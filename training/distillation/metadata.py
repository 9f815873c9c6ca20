"""Metadata of a distillation in `metadata.json`, which keeps outputs of different plans apart."""

import json
import pathlib
from typing import Any

from keras_transformer.files import json_text, write_text

METADATA = "metadata.json"
# What has changed, for an error, by the key of a plan; and the values of plans without the key.
CHANGES = {
    "teachers": "other teachers, or teachers that have changed since",
    "backward": "other backward teachers, or backward teachers that have changed since",
    "separate": "another value of `separate`",
    "search": "another search",
    "best_of": "another number of outputs to choose from",
    "sources": "other data",
    "targets": "other targets to translate back",
    "truncate_source": "another value of `data.truncate_source`",
}
DEFAULTS = {"backward": [], "separate": False}


def read_metadata(folder) -> dict[str, Any]:
    """Reads the metadata in the folder of a distillation; an empty dictionary if there are none.

    Raises:
        ValueError: If the file is damaged.
    """
    path = pathlib.Path(folder) / METADATA
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{path} is damaged ({error}): put back a copy, or remove {path.parent}, whose outputs "
            "the same command generates again."
        ) from error


def write_metadata(folder, metadata) -> None:
    """Writes the metadata, a dictionary, into the folder of a distillation."""
    write_text(folder / METADATA, json_text(metadata) + "\n")


def check_plan(folder, before, plan) -> None:
    """Raises a `ValueError` if the outputs in a folder were generated with other values.

    Args:
        folder: The folder of the distillation.
        before: The plan of the outputs in the folder, a dictionary.
        plan: The plan of this call.
    """
    before = {**DEFAULTS, **before}
    changed = [name for key, name in CHANGES.items() if before.get(key) != plan[key]]
    if changed:
        raise ValueError(
            f"{folder} was started with {', '.join(changed)}, and its outputs cannot be mixed with "
            "new ones. Choose another folder for the run."
        )


def is_complete(folder) -> bool:
    """Returns `True` if the folder of a distillation contains all outputs of the teachers."""
    return "kept" in read_metadata(folder)
