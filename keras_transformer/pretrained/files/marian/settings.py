"""The settings inside a Marian model, `special:model.yml`, which are YAML."""

import pathlib
from typing import Any

import numpy as np

from keras_transformer.checks import is_finite
from keras_transformer.pretrained.files.marian.arrays import SETTINGS
from keras_transformer.pretrained.files.marian.yaml_files import as_yaml, from_yaml
from keras_transformer.search_settings import LEAST_RATIO

LARGEST = 2**16  # bytes; Marian writes about 3,000
LENGTH_FACTOR = "max-length-factor"
DEFAULT_LENGTH_FACTOR = 3.0  # of Marian


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
        settings = from_yaml(content.tobytes().rstrip(b"\0").decode())
    except Exception as error:  # PyYAML raises nearly any error for invalid numbers or dates
        raise ValueError(f"{path} is damaged: {SETTINGS} is not YAML.") from error
    if not isinstance(settings, dict):
        raise ValueError(f"{path} is damaged: {SETTINGS} must contain settings by name.")
    return settings


def read_length_factor(path, settings) -> float:
    """Returns the factor of the source's length at which Marian ends an output.

    That of `decoder_settings` may differ from the settings of training in the model itself.

    Args:
        path: The model.
        settings: Result of `read_settings`.

    Raises:
        ValueError: If a factor is no number of at least `LEAST_RATIO`, or two files name different
            factors.
    """
    files = {
        file: content[LENGTH_FACTOR]
        for file, content in decoder_settings(path).items()
        if LENGTH_FACTOR in content
    }
    if not files:
        files = {path: settings.get(LENGTH_FACTOR, DEFAULT_LENGTH_FACTOR)}
    (first, factor), *others = files.items()
    for file, other in others:
        if other != factor:
            raise ValueError(
                f"{first} and {file} name different values of {LENGTH_FACTOR}, {factor} and "
                f"{other}. Choose one with --max-length-ratio."
            )
    if not is_finite(factor) or factor < LEAST_RATIO:
        raise ValueError(
            f"{first}: {LENGTH_FACTOR} must be at least {LEAST_RATIO}. Received: {factor!r}."
        )
    return float(factor)


def decoder_settings(path) -> dict[pathlib.Path, dict[str, Any]]:
    """Returns the settings of a model's decoder by file.

    These are the YAML files beside the model that name it under `models`, such as `decoder.yml` or
    `model.npz.decoder.yml`.

    Args:
        path: The model.
    """
    files = sorted(path.parent.glob("*.yml"))
    contents = {file: _settings_of(file, path.name) for file in files}
    return {file: content for file, content in contents.items() if content}


def _settings_of(file, model):
    """Returns the settings of a YAML file that names a model, otherwise an empty dictionary."""
    try:
        if file.stat().st_size > LARGEST:
            return {}
        settings = from_yaml(file.read_bytes().decode())
    except Exception:  # not readable, or not YAML: it is no file of this model
        return {}
    models = settings.get("models") if isinstance(settings, dict) else None
    names = [name for name in models if isinstance(name, str)] if isinstance(models, list) else []
    return settings if model in [pathlib.PurePath(name).name for name in names] else {}


def settings_array(settings) -> np.ndarray:
    """Returns settings in the form of a file: int8 with a NUL at the end."""
    return np.frombuffer(as_yaml(settings).encode() + b"\0", np.int8)
