"""Options of the values of a model that come in several kinds, such as positions, as `Table`s."""

import dataclasses
import inspect
import typing
from typing import Any

import tomlkit

from keras_transformer.arguments import options_of
from keras_transformer.checks import check_count, check_positive
from keras_transformer.mixers import AttentionHeads


@dataclasses.dataclass(frozen=True)
class Setting:
    """Description of one key of a section.

    Attributes:
        key: Name of the key.
        kind: Type and range, in words.
        default: Default as TOML, or in words.
        meaning: Purpose of the key.
    """

    key: str
    kind: str
    default: str
    meaning: str


@dataclasses.dataclass(frozen=True)
class Table:
    """Description of one section, or of one kind of `[data]`.

    Attributes:
        name: Name, such as `"training"`, `"text"` for a kind of data, or `"classification"` for the
            keys of `[model]` for a task.
        heading: Line that begins the section in a file.
        kind: Setting on which these keys depend, such as `source = "text"`; empty for keys that a
            section always has.
        about: Purpose of the section.
        settings: The `Setting`s of its keys.
    """

    name: str
    heading: str
    kind: str
    about: str
    settings: tuple


def variant_tables(
    options: list[tuple[str, dataclasses.Field]], known: frozenset = frozenset({None})
) -> list[Table]:
    """Returns a `Table` for each kind that has options, of all values among the options.

    Args:
        options: Pairs of a name and a field made by `option`.
        known: Base classes of values that other tables describe.
    """
    names: dict[Any, str] = {}
    for name, field in options:
        names.setdefault(field.metadata["of"], name)
    known_now = known | {*names}
    return [
        table
        for base, name in names.items()
        if base not in known
        for table in _kinds(base, name, known_now)
    ]


def _kinds(base, name, known):
    """Returns a table of the options of each kind of a value that has any, also nested ones."""
    result, nested = [], []
    for key, kind in base.kinds().items():
        if issubclass(kind, AttentionHeads):
            continue  # its options are those of a block
        options = options_of(kind) if dataclasses.is_dataclass(kind) else {}
        hints = typing.get_type_hints(kind, include_extras=True)
        settings = tuple(_setting(*item, hints[item[0]]) for item in options.items())
        if settings:
            about = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
            heading = f'{name} = {{ kind = "{key}", ... }}'
            result.append(Table(f"{name}.{key}", "[model]", heading, about, settings))
        nested += [(f"{name}.{option}", field) for option, field in options.items()]
    return result + variant_tables(nested, known)


def _setting(name, field, hint):
    default = field.default
    words = "required" if default is dataclasses.MISSING else "none"
    return Setting(
        name,
        "table" if field.metadata["of"] else _words(hint),
        words if default in (dataclasses.MISSING, None) else tomlkit.item(default).as_string(),
        field.metadata["help"].replace("`None`:", "If omitted:"),
    )


def _words(hint):
    """Returns a type with its checks in words."""
    if typing.get_origin(hint) is typing.Annotated:
        kind, *checks = typing.get_args(hint)
        return " ".join([_words(kind), *filter(None, map(_limit, checks))])
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(f'"{choice}"' for choice in typing.get_args(hint))
    kinds = [kind for kind in typing.get_args(hint) or (hint,) if kind is not type(None)]
    names: dict[Any, str] = {bool: "true or false", int: "integer", float: "number", str: "text"}
    names[list[str]] = "list of text"
    return " or ".join(names[kind] for kind in kinds)


def _limit(check):
    least = getattr(check, "keywords", {}).get("least", 1)
    limits = {check_positive: "above 0", check_count: f"at least {least}"}
    return limits.get(getattr(check, "func", check))
