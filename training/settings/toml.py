"""Reading and writing of training configurations in TOML, with an error of one line."""

import functools
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pydantic
import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError

from keras_transformer.training.settings.explanations import did_you_mean, explain, listed, origin
from keras_transformer.training.settings.inheritance import inherit
from keras_transformer.training.settings.packaged import CONFIGS, packaged
from keras_transformer.training.settings.schema import Settings
from keras_transformer.training.settings.sources import data_kinds
from keras_transformer.training.settings.taken_vocabulary import fill_in

DATA = "KERAS_TRANSFORMER_DATA"  # of the packaged configurations
DOWNLOAD = " In a checkout, `python benchmarks/data.py download` fetches the data into its folder."


class SettingsError(ValueError):
    """An error in a configuration; its message is one line for the author of the configuration."""


def load_settings(
    path: str | os.PathLike, overrides: Iterable[str] = (), *, like: Settings | None = None
) -> Settings:
    """Reads a configuration.

    Args:
        path: A TOML file, or the name of a configuration that comes with the package, for example
            `"demo"`.
        overrides: Strings `"section.key=value"` that replace values of the file. The value is TOML;
            quotes around a plain word may be left out. Paths in overrides are relative to the
            current folder, paths in the file to its own folder.
        like: Other `Settings`, whose configuration is used if it describes the same model.

    Returns:
        The `Settings`.

    Raises:
        SettingsError: If the file cannot be read or a key or value is wrong. One line with the
            file, the key, the mistake and the correction.
    """
    path = _find(path)
    values = _resolve_paths(_parse(path), path, path.parent)
    overrides = list(overrides)
    for override in overrides:
        _override(values, override)
    _refuse_undecoded(values, path)
    try:
        fill_in(values, load_settings)
        inherit(values, load_settings)
    except SettingsError:
        raise  # the message names the file of the other run
    except ValueError as error:
        raise SettingsError(f"{origin(path, overrides, str(error))}: {error}") from None
    return make_settings(values, path, overrides, like)


def make_settings(values, where, overrides=(), like=None) -> Settings:
    """Returns the `Settings` in nested dictionaries.

    Args:
        values: The dictionaries, with absolute paths.
        where: Beginning of an error, such as the path of a file.
        overrides, like: See `load_settings`.

    Raises:
        SettingsError: See `load_settings`.
    """
    try:
        return Settings.model_validate(values, context=like)
    except pydantic.ValidationError as error:
        raise SettingsError(explain(error.errors(), values, where, overrides)) from None


def save_settings(settings: Settings, path: str | os.PathLike) -> None:
    """Writes every key that has an effect, so that `load_settings(path) == settings`.

    Paths below the folder of the file become relative to it, so that the folder can be moved.

    Args:
        settings: The `Settings`.
        path: The TOML file to write.
    """
    values, folder = settings.used(), os.path.abspath(Path(path).parent) + os.sep
    for section, keys in _path_keys(tuple(data_kinds().values())).items():
        table = values.get(section, {})
        for key in keys & set(table):
            value = table[key]  # not a path, but two dates, for time series
            if isinstance(value, str):
                table[key] = value.removeprefix(folder)
            elif isinstance(value, (list, tuple)) and all(isinstance(x, str) for x in value):
                table[key] = [path.removeprefix(folder) for path in value]
    Path(path).write_text(tomlkit.dumps(values), encoding="utf-8")


def differences(settings, others) -> list[str]:
    """Returns the dotted keys in which two `Settings` differ, in the order of the file."""
    first, second = settings.model_dump(), others.model_dump()
    return [
        f"{section}.{key}"
        for section in first
        for key in {**first[section], **second[section]}
        if first[section].get(key) != second[section].get(key)
    ]


def _find(path):
    path = Path(path)
    if path.is_file():
        return path
    shipped = CONFIGS / f"{path}.toml"
    if shipped.is_file():
        return shipped
    names = [*packaged()]
    beside = [str(other) for other in sorted(path.parent.glob("*.toml"))]
    if path.is_dir():
        raise SettingsError(
            f"{path}: is a folder; name a configuration file in it, such as config.toml."
        )
    raise SettingsError(
        f"{path}: no such configuration file{did_you_mean(path, [*names, *beside])} "
        f"Configurations that come with the package: {listed(names)}."
    )


def _parse(path):
    try:
        return tomlkit.parse(path.read_text(encoding="utf-8")).unwrap()
    except ParseError as error:
        what = re.sub(r" at line \d+ col \d+$", "", str(error)).rstrip(".")
        raise SettingsError(
            f"{path}, line {error.line}, column {error.col}: not valid TOML: {what}."
        ) from None
    except TOMLKitError as error:
        raise SettingsError(f"{path}: not valid TOML: {str(error).rstrip('.')}.") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not UTF-8: byte {error.start} cannot be read.") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}.") from None


def _refuse_undecoded(values, path, place=""):
    """Refuses text with bytes that Python could not decode, which no file could contain.

    They come from the names of files or from options, if the locale is not UTF-8.
    """
    if isinstance(values, (dict, list)):
        items = values.items() if isinstance(values, dict) else [(None, v) for v in values]
        for key, value in items:
            name = place if key is None else f"{place}.{key}".lstrip(".")
            _refuse_undecoded(value, path, name)
    elif isinstance(values, str) and not values.isascii():
        try:
            values.encode()
        except UnicodeEncodeError:
            raise SettingsError(
                f"{path}: {place} must be valid UTF-8, and Python reads names of files in another "
                "encoding: set PYTHONUTF8=1 or LC_ALL=C.UTF-8. Received: "
                f"{ascii(values)}."
            ) from None


def _override(values, text):
    """Applies an override `"section.key=value"` to the nested dictionaries `values`."""
    key, equals, value = text.partition("=")
    section, dot, name = key.strip().partition(".")
    if not (equals and dot and section and name):
        raise SettingsError(
            f"--set {text}: must have the form section.key=value, for example "
            "training.updates=1000."
        )
    if section in values and not isinstance(values[section], dict):
        return  # not a table, which the validation reports
    changed = _toml_value(value.strip())
    for part in reversed(name.split(".")):
        changed = {part.strip(): changed}
    changed = _resolve_paths({section: changed}, f"--set {text}", Path.cwd())[section]
    _merge(values.setdefault(section, {}), changed)


def _merge(table, changes):
    """Merges changes into nested dictionaries."""
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(table.get(key), dict):
            _merge(table[key], value)
        else:
            table[key] = value


def _toml_value(text):
    try:
        return tomlkit.parse(f"value = {text}").unwrap()["value"]
    except TOMLKitError:
        return text  # a word without quotes; the schema rejects it if the key needs a number


def _resolve_paths(values, where, base):
    """Makes the paths of a file or an override absolute, so that they work in any folder."""
    for section, keys in _path_keys(tuple(data_kinds().values())).items():
        table = values.get(section)
        for key in keys & set(table if isinstance(table, dict) else ()):
            what, value = f"{where}: {section}.{key}", table[key]
            if isinstance(value, str):
                table[key] = _absolute(value, what, base)
            elif isinstance(value, list):
                table[key] = [
                    _absolute(path, what, base) if isinstance(path, str) else path for path in value
                ]
    return values


def _absolute(text, where, base):
    """Returns an absolute path, with `~` and environment variables replaced."""
    path = os.path.expanduser(os.path.expandvars(text))
    missing = re.search(r"\$\{?(\w+)", path)
    if missing:
        raise SettingsError(
            f"{where} = {text!r} needs the environment variable {missing[1]}, which is not set."
            f"{DOWNLOAD if missing[1] == DATA else ''}"
        )
    # A URL such as gs://bucket/folder is absolute already.
    return path if "://" in path else os.path.abspath(base / path)


@functools.cache
def _path_keys(kinds):
    """Returns the set of keys that hold paths in each section, found by their types.

    Args:
        kinds: The sections of all kinds of data.
    """
    keys = {}
    for name, field in Settings.model_fields.items():
        sections: Any = kinds if name == "data" else (field.annotation,)
        for model in sections:
            for key, kind in model.model_json_schema()["properties"].items():
                if any(
                    variant.get("format") == "path" for variant in (kind, *kind.get("anyOf", ()))
                ):
                    keys.setdefault(name, set()).add(key)
    return keys
