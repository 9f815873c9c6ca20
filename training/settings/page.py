"""The page about every setting, made from the schema: for a terminal and for `docs/settings.md`."""

import dataclasses
import difflib
import inspect
import textwrap

import tomlkit

from keras_transformer.config.stack import OPTIONS_OF_BLOCK, OPTIONS_OF_STACK
from keras_transformer.tasks import TASKS
from keras_transformer.training.settings.model_sections import ModelSettings, model_settings
from keras_transformer.training.settings.schema import DATA_KINDS, Settings

INTRODUCTION = """\
# Settings of a training

`keras-transformer train CONFIG.toml --output RUN` reads these sections; `--set section.key=value`
replaces single values. Only `[data]` must be there. The same text is printed by
`keras-transformer settings`, from which this page is made (`make docs`).
"""

MAY_CHANGE = " A run that goes on may change it."


@dataclasses.dataclass(frozen=True)
class Setting:
    """One key of a section.

    Attributes:
        key: Its name.
        kind: Type and range, in words.
        default: As TOML, or in words.
        meaning: What it decides.
    """

    key: str
    kind: str
    default: str
    meaning: str


@dataclasses.dataclass(frozen=True)
class Table:
    """One section, or one kind of `[data]`.

    Attributes:
        name: Such as `"training"`, `"text"` for a kind of data, or `"classification"` for the keys
            of `[model]` of a task.
        heading: The line that begins it in a file.
        kind: The setting that these keys belong to, such as `source = "text"`; empty for keys that
            a section always has.
        about: What it is about.
        settings: Its keys, `Setting` each.
    """

    name: str
    heading: str
    kind: str
    about: str
    settings: tuple


def tables(section=None):
    """Returns the sections of a configuration as `Table`s.

    Args:
        section: Only this one: a section or a kind of data. `"data"` is all kinds of it.

    Raises:
        ValueError: If there is no such section.
    """
    every = []
    for name, field in Settings.model_fields.items():
        if name == "data":
            every += [
                _table(kind, model, "[data]", f'source = "{kind}"')
                for kind, model in DATA_KINDS.items()
            ]
        elif name == "model":
            every += _model_tables()
        else:
            every.append(_table(name, field.annotation, f"[{name}]"))
    if section is None:
        return every
    chosen = [table for table in every if section in (table.name, table.heading.strip("[]"))]
    if not chosen:
        names = [*Settings.model_fields, *DATA_KINDS]
        close = difflib.get_close_matches(section, names, n=1)
        raise ValueError(
            f"`section` must be one of {', '.join(names)}"
            f"{f'; did you mean {close[0]}?' if close else '.'} Received: section={section!r}."
        )
    return chosen


def as_text(section=None, width=100):
    """Returns the sections for a terminal; the arguments are those of `tables`."""
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


def as_markdown():
    """Returns `docs/settings.md`."""
    lines = [INTRODUCTION]
    for table in tables():
        kind = f", `{table.kind}`" if table.kind else ""
        lines += [f"## `{table.heading}`{kind}\n", f"{table.about}\n"]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        for setting in table.settings:
            cells = f"`{setting.key}`", setting.kind, setting.default, setting.meaning
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        lines.append("")
    return "\n".join(lines[:-1])


def _model_tables():
    """The table of the keys that all blocks have, and one of the other keys of each model."""
    classes = {}
    for task in TASKS.values():
        classes.setdefault(task.config_class, []).append(task.name)
    of_blocks = {*ModelSettings.model_fields, *OPTIONS_OF_STACK, *OPTIONS_OF_BLOCK}
    first = next(iter(classes))
    result = [_table("model", model_settings(first), "[model]", chosen=of_blocks)]
    for config_class, names in classes.items():
        model = model_settings(config_class)
        result.append(
            _table(
                names[0],
                model,
                "[model]",
                f"task.kind = {' or '.join(map(_toml, names))}",
                f"Keys of a model for {' and '.join(names)}, in addition to those of every model.",
                model.model_fields.keys() - of_blocks,
            )
        )
    return result


def _table(name, model, heading, kind="", about=None, chosen=None):
    schema = model.model_json_schema()
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
    about = " ".join(inspect.cleandoc(about or model.__doc__).split())
    return Table(name, heading, kind, about, settings)


def _kind(field):
    """The type and the range of a JSON schema in words."""
    if "in_words" in field:
        return field["in_words"]
    field = next((kind for kind in field.get("anyOf", ()) if kind["type"] != "null"), field)
    if "const" in field:
        return _toml(field["const"])
    if "enum" in field:
        return " or ".join(map(_toml, field["enum"]))
    if field["type"] == "array":
        return f"list of: {_kind(field['items'])}"
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
    """The default in TOML, or what stands for one."""
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
