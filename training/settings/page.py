"""Reference of all settings, made from the schema: as tables, and as text for a terminal."""

import difflib
import functools
import inspect
import textwrap
from typing import Any

import tomlkit

from keras_transformer.config.stack import StackConfig
from keras_transformer.tasks import TASKS
from keras_transformer.training.settings.fields import section_in
from keras_transformer.training.settings.model_sections import ModelSettings, model_settings
from keras_transformer.training.settings.schema import Settings
from keras_transformer.training.settings.sources import data_kinds
from keras_transformer.training.settings.variant_tables import Setting, Table, variant_tables

MAY_CHANGE = " It may change when a run resumes."


def tables(section=None) -> list[Table]:
    """Returns the sections of a configuration as `Table`s.

    Args:
        section: Name of a section, of a task, or of a kind of data or another value that has
            options; `"data"` for all kinds of data. `None`: all sections.

    Raises:
        ValueError: If there is no section of this name.
    """
    every = []
    for name, field in Settings.model_fields.items():
        if name == "data":
            every += [
                _table(kind, model, "[data]", f'source = "{kind}"')
                for kind, model in data_kinds().items()
            ]
        elif name == "model":
            every += [
                *_model_tables(),
                *variant_tables(_of_models()),
            ]
        else:
            every.append(_table(name, field.annotation, f"[{name}]"))
            section_class: Any = field.annotation
            for key, inner in section_class.model_fields.items():
                if (nested := section_in(inner.annotation)) is not None:
                    every.append(_table(f"{name}.{key}", nested, f"[{name}.{key}]"))
    if section is None:
        return every
    chosen = [
        table
        for table in every
        if section in (table.name, table.heading.strip("[]")) or f'"{section}"' in table.kind
    ]
    if not chosen:
        names = [*Settings.model_fields, *data_kinds(), *TASKS]
        close = difflib.get_close_matches(section, names, n=1)
        raise ValueError(
            f"`section` must be one of {', '.join(Settings.model_fields)}, the name of a task or "
            f"of a kind of data{f'; did you mean {close[0]}?' if close else '.'} "
            f"Received: section={section!r}."
        )
    return chosen


def as_text(section=None, width=100) -> str:
    """Returns the text for a terminal.

    Args:
        section: See `tables`.
        width: Maximum length of a line.
    """
    lines = []
    for table in tables(section):
        lines += [f"{table.heading}  {table.kind}".rstrip(), *textwrap.wrap(table.about, width), ""]
        for setting in table.settings:
            lines.append(f"  {setting.key} = {setting.default}  ({setting.kind})")
            lines += textwrap.wrap(
                setting.meaning, width, initial_indent=" " * 6, subsequent_indent=" " * 6
            )
        lines.append("")
    return "\n".join(lines[:-1])


def _of_models():
    """Returns the options of all models, as pairs of a name and a field."""
    parts = [part for task in TASKS.values() for part in task.config_class.description.values()]
    options = [item for part in parts for item in part.options().items()]
    return [item for item in options if item[0] != "cross_attention"]  # as those of attention


def _model_tables():
    """Returns a table of the keys that all models have, and one of the other keys of each model."""
    classes = {}
    for task in TASKS.values():
        classes.setdefault(task.config_class, []).append(task.name)
    first = next(iter(classes))
    of_blocks = {*ModelSettings.model_fields, *StackConfig().options()} - {"cross_attention"}
    of_blocks &= {*model_settings(first).model_fields}  # others are those of one kind of model
    result = [_table("model", model_settings(first), "[model]", chosen=of_blocks)]
    for config_class, names in classes.items():
        model = model_settings(config_class)
        result.append(
            _table(
                names[0],
                model,
                "[model]",
                f"task.kind = {' or '.join(map(_toml, names))}",
                f"More keys of a model for {' and '.join(names)}.",
                model.model_fields.keys() - of_blocks,
            )
        )
    return result


@functools.cache
def _schema(model):
    return model.model_json_schema()


def _table(name, model, heading, kind="", about=None, chosen=None):
    schema = _schema(model)
    required = schema.get("required", ())
    fields = sorted(schema["properties"].items(), key=lambda item: "const" not in item[1])
    free = getattr(model, "may_change", ())
    settings = tuple(
        Setting(
            key,
            _kind(field),
            _default(key, field, required),
            field["description"] + (MAY_CHANGE if key in free else ""),
        )
        for key, field in fields
        if chosen is None or key in chosen
    )
    about = " ".join(inspect.cleandoc(about or model.__doc__ or "").split())
    return Table(name, heading, kind, about, settings)


def _kind(field):
    """Returns the type and the range of a JSON schema in words."""
    if "in_words" in field:
        return field["in_words"]
    field = next((kind for kind in field.get("anyOf", ()) if kind["type"] != "null"), field)
    if "const" in field:
        return _toml(field["const"])
    if "enum" in field:
        return " or ".join(map(_toml, field["enum"]))
    if field["type"] == "array":
        items = field["items"]
        return f"list of: {_kind(items) if 'type' in items else 'texts or tables'}"
    names = {"string": "text", "boolean": "true or false"}
    if field.get("format") == "date":
        return "date"
    name = "path" if field == {**field, "type": "string", "format": "path"} else field["type"]
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    limits = [f"{word} {field[key]}" for key, word in words.items() if key in field]
    return " ".join([names.get(name, name), " and ".join(limits)]).strip()


def _default(key, field, required):
    """Returns the default in TOML, or a description of it."""
    if key in required or "const" in field:
        return "required"
    if "default_in_words" in field:
        return field["default_in_words"]
    if "base" in field:  # a field of the model
        base = field["base"]
        return "the preset's" if base is None else f"the preset's, {_toml(base)} in base"
    return "none" if field["default"] is None else _toml(field["default"])


def _toml(value):
    return tomlkit.item(value).as_string()
