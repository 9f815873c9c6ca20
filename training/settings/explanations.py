"""Explanations of errors in settings: the file or option to change, the key, and the mistake."""

import difflib
import re
from pathlib import Path
from typing import Any

from keras_transformer.plugins import REMEDY
from keras_transformer.tasks import TASKS
from keras_transformer.training.settings.fields import section_in
from keras_transformer.training.settings.model_sections import model_settings
from keras_transformer.training.settings.schema import Settings
from keras_transformer.training.settings.sources import data_kinds

NO_TABLE = ("model_type", "model_attributes_type")


def explain(errors, values, where, overrides=()) -> str:
    """Returns the most important error of pydantic in one line.

    Args:
        errors: The errors, as pydantic lists them.
        values: The settings as nested dictionaries.
        where: Path of their file, or another beginning of the line.
        overrides: The overrides that are among them, strings `"section.key=value"`.
    """
    error = _first(errors)
    place, text = _place(error), _explain(error, values)
    key, is_unknown = ".".join(place), error["type"] == "extra_forbidden"
    if len(place) == 1 and not is_unknown:  # a rule between keys, which it names
        return f"{origin(where, overrides, text)}: {text}"
    named = [override for override in overrides if _sets(override, key)]
    if named:
        return f"--set {named[-1]}: {text}"
    if (is_unknown or error["type"] == "missing") and _is_of_a_run(where):
        differs = (
            f"with {key}, which is not a setting of this one" if is_unknown else f"without {key}"
        )
        text = f"the run is from an earlier version, {differs}: train the model again, or convert "
        text += "its checkpoint again."
    return f"{where}: {text}"


def origin(where, overrides, text) -> str:
    """Returns what to change after an error about several keys, or about what a key names.

    Args:
        where, overrides: See `explain`.
        text: The error.

    Returns:
        The overrides whose keys, or otherwise values, the error names; without any, `where`.
    """
    named = [one for one in overrides if re.search(rf"\b{_last(one)}\b", text)]
    if not named:
        values = [(one, one.partition("=")[2].strip(" \"'")) for one in overrides]
        named = [one for one, value in values if len(value) > 2 and value in text]
    return " ".join(f"--set {one}" for one in named) or where


def _place(error):
    """Returns the section and key of an error; only the section, or "", if it has several keys."""
    section, *rest = error["loc"] or ("",)
    if section == "data":
        rest = rest[1:]  # without the kind of data, which pydantic inserts
        if error["type"].startswith("union_tag") and isinstance(error["input"], dict):
            rest = ["source"]
    return [section, *map(str, rest)]


def _sets(override, key):
    """Returns `True` if an override sets a key, a table around it or a key in it."""
    own = ".".join(part.strip() for part in override.partition("=")[0].split("."))
    return f"{own}.".startswith(f"{key}.") or f"{key}.".startswith(f"{own}.")


def _last(override):
    return re.escape(override.partition("=")[0].rpartition(".")[2].strip())


def _is_of_a_run(path):
    """Returns `True` if a path is that of the settings of a run that was trained or converted."""
    folder = Path(path).parent
    is_trained = (folder / "model.keras").exists() or any(folder.glob("checkpoints/update-*.npz"))
    return Path(path).name == "config.toml" and is_trained


def _first(errors):
    """Returns the error to report.

    An error in the task comes first, because the task determines the keys of the model; then an
    unknown key, which may be the misspelt name of a missing one.
    """
    return min(
        errors,
        key=lambda error: (error["loc"][:1] != ("task",), error["type"] != "extra_forbidden"),
    )


def _explain(error, values):
    """Returns an error of pydantic in one line: the key, the mistake and what would be valid."""
    section, *rest = _place(error)
    key = ".".join([section, *rest])
    if error["type"] == "union_tag_invalid":
        source = error["ctx"]["tag"]
        near = did_you_mean(source, data_kinds())
        return (
            f"data.source must be one of {listed(data_kinds())}{near} Received: {source!r}. "
            f"For data of another package, {REMEDY}."
        )
    if error["type"] == "union_tag_not_found" and isinstance(error["input"], dict):
        return f"data.source is missing: it must be one of {listed(data_kinds())}."
    message = re.sub(r"^(Value error, |Input )", "", error["msg"]).replace("should be", "must be")
    message = message.replace("\n", " ")
    if section == "data" and error["type"] == "missing" and not rest:
        return (
            "[data] is missing, which describes the data to train on; its source must be one of "
            f"{listed(data_kinds())}."
        )
    if not rest:
        return _explain_section(error, section, message)
    fields = _fields(section, values)
    if len(rest) > 1 and (table := section_in(fields[rest[0]].annotation)) is not None:
        fields = table.model_fields
    valid = list(fields)
    if error["type"] in NO_TABLE:
        return f"{key} must be a table, [{key}]. Received: {error['input']!r}."
    if error["type"] == "extra_forbidden":
        of = f" of a model for {_kind(values)}" if section == "model" else ""
        near = did_you_mean(rest[-1], valid)
        return f"{key} is not a setting{of}{near} Valid keys: {listed(valid)}."
    if error["type"] == "missing":
        meaning = str(fields[rest[-1]].description).rstrip(".")
        return f"{key} is missing: {meaning}. Keys of [{section}]: {listed(valid)}."
    return f"{key} {message.rstrip('.')}. Received: {error['input']!r}."


def _explain_section(error, section, message):
    sections = list(Settings.model_fields)
    if error["type"] == "extra_forbidden":
        return (
            f"[{section}] is not a section{did_you_mean(section, sections)} "
            f"Valid sections: {listed(sections)}."
        )
    if error["type"] in (*NO_TABLE, "union_tag_not_found"):
        return f"{section} must be a section, [{section}]. Received: {error['input']!r}."
    return f"[{section}] {message}" if section else message


def _fields(section, values):
    if section == "data":
        return data_kinds()[values["data"]["source"]].model_fields
    model: Any = Settings.model_fields[section].annotation
    if section == "model":
        model = model_settings(TASKS[_kind(values)].config_class)
    return model.model_fields


def _kind(values):
    return values.get("task", {}).get("kind", "translation")


def did_you_mean(word, valid) -> str:
    """Returns the end of a sentence, with the valid word that is most like another one."""
    close = difflib.get_close_matches(str(word), valid, n=1)
    return f"; did you mean {close[0]}?" if close else "."


def listed(names) -> str:
    """Returns names with commas between them."""
    return ", ".join(names)
