"""Options of configurations: dataclass fields with a default, a help text and checks.

Each option is declared once. The docstrings and signatures of configurations and layers, the stubs
that type checkers and editors read, the schema of the settings and pages of the documentation are
generated from these fields.
"""

import copy
import dataclasses
import inspect
import textwrap
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)

# Beginning of the last entry of `Args` in a docstring, which is replaced by the options.
PLACEHOLDER = "**options: "
KERAS = "**kwargs: `name`, `dtype` and `trainable` as in every Keras layer."


def option(default, description, set_by=None, statistic=False, of=None, short=None) -> Any:
    """Returns a dataclass field with a default and a help text, stored as its metadata `"help"`.

    Args:
        default: The default, immutable. `dataclasses.MISSING`: the option is required.
        description: Help text, in whole sentences. A sentence that begins with `None:` explains
            the meaning of `None`.
        set_by: `"vocabulary"` or `"data"` if these determine the option, so that it is not a
            setting in a TOML file.
        statistic: Whether trained weights can be used with any value of the option.
        of: The base class of a `Variant`, if the option is one.
        short: Name of the option where it is given among those of a block. `None`: its own name.
    """
    metadata = {"help": " ".join(description.split()), "set_by": set_by, "statistic": statistic}
    return dataclasses.field(default=default, metadata={**metadata, "of": of, "short": short})


def options_of(*configurations, leave_out=()) -> dict[str, dataclasses.Field]:
    """Returns the fields of dataclasses that have a help text, by name.

    Args:
        *configurations: The dataclasses, in the order of the result.
        leave_out: Names of options to leave out.
    """
    fields = [field for config in configurations for field in dataclasses.fields(config)]
    return {
        field.name: field
        for field in fields
        if "help" in field.metadata and field.name not in leave_out
    }


def redeclared(field: dataclasses.Field, default, description, accepts=None) -> dataclasses.Field:
    """Returns the field of an option with another default and help text.

    Args:
        field: The field.
        default, description: See `option`.
        accepts: The type of its values. `None`: that of the field.
    """
    other = copy.copy(field)
    other.default, other.type = default, field.type if accepts is None else accepts
    help_text = {"help": " ".join(description.split())}
    other.metadata = types.MappingProxyType({**field.metadata, **help_text})
    return other


def accepted(field: dataclasses.Field) -> Any:
    """Returns the type of the values that an option accepts, which a configuration may replace.

    Names, tables and perhaps an integer stand for a `Variant`, a dictionary for another dataclass,
    and lists for tuples, as in TOML files. A type that is written as a string is not looked up:
    `Any`.
    """
    kind: Any = Any if isinstance(field.type, str) else field.type
    if typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    base = field.metadata.get("of")
    if base is not None:
        names = kind | str | dict[str, Any]
        return names | int if base.number_for else names
    if dataclasses.is_dataclass(kind):
        return kind | dict[str, Any]
    return tuple | list if kind is tuple else kind


def parameter(name: str, field: dataclasses.Field) -> inspect.Parameter:
    """Returns an option as a keyword argument with its type and default."""
    is_required = field.default is dataclasses.MISSING
    default = inspect.Parameter.empty if is_required else field.default
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=accepted(field)
    )


def documented(config: Class) -> Class:
    """Class decorator that writes the options of a dataclass into its docstring."""
    return _described(config, _entries(options_of(config)))


def with_options(options) -> Callable[[Class], Class]:
    """Returns a class decorator that documents options as arguments of a layer.

    The layer takes the options as `**options`. The decorator writes them into the docstring and the
    signature, except for options that the constructor names.

    Args:
        options: Fields from `options_of`.
    """

    def decorate(layer: Class) -> Class:
        own = inspect.signature(layer.__init__).parameters
        named = [p for p in own.values() if p.kind is not p.VAR_KEYWORD]
        listed = {name: field for name, field in options.items() if name not in own}
        by_name = [parameter(name, field) for name, field in listed.items()]
        rest = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD, annotation=Any)
        constructor: Any = layer.__init__
        constructor.__signature__ = inspect.Signature([*named, *by_name, rest])
        return _described(layer, [*_entries(listed), KERAS])

    return decorate


def _entries(options):
    """Returns the entries of `Args` for options, wrapped into lines."""
    return [
        textwrap.fill(f"{name}: {field.metadata['help']}", 92, subsequent_indent="    ")
        for name, field in options.items()
    ]


def _described(described, entries):
    """Returns the class after replacing the last entry of `Args` in its docstring by `entries`."""
    if described.__doc__:  # Python leaves docstrings out with -OO
        before, placeholder, after = described.__doc__.partition(PLACEHOLDER)
        if placeholder:
            indent = before[len(before.rstrip(" ")) :]
            _, blank, rest = after.partition("\n\n")
            listed = textwrap.indent("\n".join(entries), indent).removeprefix(indent)
            described.__doc__ = before + listed + blank + rest
    return described
