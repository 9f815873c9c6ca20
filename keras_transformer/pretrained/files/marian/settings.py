"""The settings inside a Marian model, `special:model.yml`, which are YAML."""

from typing import Any

import numpy as np
import yaml

from keras_transformer.pretrained.files.marian.arrays import SETTINGS

LARGEST = 2**16  # bytes; Marian writes about 3,000


class _Loader(yaml.SafeLoader):
    """Loads YAML without aliases, by which a few bytes could represent billions of values."""

    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def read_settings(arrays, path) -> dict[str, Any]:
    """Returns the settings of a file.

    Args:
        arrays: Result of `read_npz` or `read_bin`.
        path: The file, for errors.

    Raises:
        ValueError: If the settings are missing or cannot be read.
    """
    if SETTINGS not in arrays:
        raise ValueError(f"{path} is not a model of Marian: it has no {SETTINGS}.")
    content = arrays[SETTINGS]
    if not isinstance(content, np.ndarray) or content.nbytes > LARGEST:
        raise ValueError(f"{path} is damaged: {SETTINGS} must be text of at most {LARGEST} bytes.")
    try:
        settings = yaml.load(content.tobytes().rstrip(b"\0").decode(), _Loader)  # noqa: S506
    except Exception as error:  # PyYAML raises nearly any error for invalid numbers or dates
        raise ValueError(f"{path} is damaged: {SETTINGS} is not YAML.") from error
    if not isinstance(settings, dict):
        raise ValueError(f"{path} is damaged: {SETTINGS} must contain settings by name.")
    return settings


def settings_array(settings) -> np.ndarray:
    """Returns settings in the form of a file: int8 with a NUL at the end."""
    return np.frombuffer(as_yaml(settings).encode() + b"\0", np.int8)


def as_yaml(settings) -> str:
    """Returns a dictionary as YAML."""
    return yaml.safe_dump(settings, default_flow_style=False, sort_keys=True)
