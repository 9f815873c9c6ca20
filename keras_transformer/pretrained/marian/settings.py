"""The settings inside a Marian model, `special:model.yml`: a dictionary, and bytes of YAML."""

import numpy as np
import yaml

from keras_transformer.pretrained.marian.arrays import SETTINGS


def read_settings(arrays, path):
    """Returns the settings of a file.

    Args:
        arrays: From `read_npz` or `read_bin`.
        path: The file, for errors.

    Raises:
        ValueError: If they are missing or cannot be read.
    """
    if SETTINGS not in arrays:
        raise ValueError(f"{path} is no model of Marian: it has no {SETTINGS}.")
    try:
        content = np.asarray(arrays[SETTINGS]).tobytes().rstrip(b"\0").decode()
        settings = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged: {SETTINGS} is no YAML.") from error
    if not isinstance(settings, dict):
        raise ValueError(f"{path} is damaged: {SETTINGS} must hold settings by name.")
    return settings


def settings_array(settings):
    """Returns settings as a file holds them: int8, ending in NUL."""
    text = yaml.safe_dump(settings, default_flow_style=False, sort_keys=True)
    return np.frombuffer(text.encode() + b"\0", np.int8)
