"""Parts of a model's configuration: their base class, and the assignment of options to parts."""

import dataclasses
import inspect
from typing import Any, TypeVar

from keras_transformer.arguments import accepted, options_of, parameter
from keras_transformer.checks import check_fields
from keras_transformer.mixers import (
    CrossAttention,
    check_given_once,
    overridden,
    short_options,
)
from keras_transformer.variants import Variant, make_fields, plain

Config = TypeVar("Config", bound="PartConfig")


class OldConfigurationError(ValueError):
    """Error for a configuration of an earlier version, whose parts or options were others."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartConfig:
    """A frozen dataclass of options, which are checked and can be converted to plain values.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range.
    """

    def __post_init__(self) -> None:
        make_fields(self)
        check_fields(self)

    def check_with(self, config: Any) -> None:
        """Checks options against the other parts of a `ModelConfig`.

        Raises:
            ValueError: If an option does not fit the other parts.
        """

    def options(self) -> dict[str, dataclasses.Field]:
        """Returns the fields of the options that have an effect, by name."""
        return options_of(type(self))

    @classmethod
    def from_flat(cls: type[Config], **options: Any) -> Config:
        """Returns the configuration with these options."""
        return cls(**options)

    def with_options(self: Config, **options: Any) -> Config:
        """Returns the configuration with other values of some options."""
        return type(self).from_flat(**{**self.to_flat(), **options})

    def to_flat(self) -> dict[str, Any]:
        """Returns the options by name: plain values, positions and scores."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls: type[Config], fields: dict[str, Any]) -> Config:
        """Returns the configuration from a result of `to_dict`.

        Raises:
            OldConfigurationError: If an option is unknown.
        """
        unknown = sorted({*fields} - {field.name for field in dataclasses.fields(cls)})
        if unknown:
            raise OldConfigurationError(
                f"has options of another version, {', '.join(unknown)}: train the model again, or "
                "convert its checkpoint again."
            )
        return cls(**fields)

    def to_dict(self) -> dict[str, Any]:
        """Returns the options as a dictionary of plain values."""
        return plain(PartConfig.to_flat(self))


PARTS = ("input", "encoder", "decoder", "head")
STACKS = ("encoder", "decoder")
# Options of a stack on whose values it depends which other options have an effect.
DECIDING = ("mixer", "cross_attention", "feed_forward")


@dataclasses.dataclass(frozen=True)
class Part:
    """Description of one part of a kind of model.

    Attributes:
        default: The default configuration.
        kind: Name of the option for which a string is short: `decoder="ssru"` means
            `decoder={"mixer": "ssru"}`. `None`: a string is not allowed.
        leave_out: Options that have no effect in this part.
        more_kinds: Strings that are allowed in addition to the values of the option `kind`.
        causal: Whether each position of an encoder reads only itself and earlier ones.
    """

    default: Any
    kind: str | None = None
    leave_out: tuple = ()
    more_kinds: tuple = ()
    causal: bool = False

    def options(self, base=None) -> dict[str, dataclasses.Field]:
        """Returns the fields of the flat options, by name.

        Args:
            base: The configuration that the options change. `None`: the default.
        """
        options = (self.default if base is None else base).options()
        left_out = self.leave_out
        if "cross_attention" in left_out and base and base.has_blocks and base.has_state:
            left_out = (*left_out, *short_options(CrossAttention))  # the part has no attention
        if self.kind not in self.default.options():
            left_out = (*left_out, self.kind)
        return {name: field for name, field in options.items() if name not in left_out}

    def resolved(self, base, table, flat) -> Any:
        """Returns a configuration with the values that are given on which the options depend.

        Args:
            base, table: The result of `begin`.
            flat: The options of all parts.
        """
        given = {**flat, **table}
        deciding = {*DECIDING} & {*given} & {*self.options(base)}
        return base.with_options(**{name: given[name] for name in deciding}) if deciding else base

    def kind_option(self) -> dataclasses.Field | None:
        """Returns the field of the option for which a string is short, or `None`."""
        return self.default.options().get(self.kind)

    def accepted(self) -> Any:
        """Returns the type of the values of `begin`."""
        whole = type(self.default) | dict[str, Any] | None
        kind = self.kind_option()
        return whole if kind is None else whole | accepted(kind)

    def begin(self, given) -> tuple[Any, dict[str, Any]]:
        """Returns the configuration to start from, and the options given for this part alone.

        Args:
            given: A configuration, a dictionary of options, a string for `kind`, or `None`.
        """
        if isinstance(given, str | Variant) and self.kind:
            given = {self.kind: given}
        if given is None or isinstance(given, dict):
            return self.default, dict(given or {})
        return given, {}

    def from_dict(self, fields) -> Any:
        """Returns the configuration of the part from a result of its `to_dict`."""
        return type(self.default).from_dict(fields)


def known_options(description) -> dict[str, dataclasses.Field]:
    """Returns the fields of all flat options of a kind of model, by name."""
    return {key: field for part in description.values() for key, field in part.options().items()}


def parameters(description, aliases) -> list[inspect.Parameter]:
    """Returns the arguments of the configuration of a kind of model, with types and defaults.

    Args:
        description: The `Part`s, by name.
        aliases: Additional names of options of one stack, each with the stack and its option.
    """
    options = known_options(description)
    others = {name: part.accepted() for name, part in description.items()}
    others |= {name: accepted(options[key]) | None for name, (_, key) in aliases.items()}
    return [
        *(parameter(name, field) for name, field in options.items()),
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in others.items()
        ),
    ]


def effective_options(description, given) -> set[str]:
    """Returns the names of the flat options that have an effect, given the options of parts."""
    _check_given(description, given)
    bases = {
        name: part.resolved(*part.begin(given.get(name)), given)
        for name, part in description.items()
    }
    return {key for name, part in description.items() for key in part.options(bases[name])}


def distribute(description, aliases, values, owner) -> dict[str, Any]:
    """Returns the configurations of the parts, by name, from flat options.

    Args:
        description: The `Part`s of a kind of model, by name.
        aliases: Additional names of options of one stack, each with the stack and its option.
        values: Options by name, and options for only one part under its name; see `Part.begin`.
        owner: Name of the class of the configuration.

    Raises:
        TypeError: If a part is neither a configuration nor a dictionary.
        ValueError: If an option is unknown or has no effect.
    """
    _check_given(description, values)
    given = {name: values[name] for name in PARTS if values.get(name) is not None}
    flat = {key: values[key] for key in values if key not in (*PARTS, *aliases)}
    begun = {name: part.begin(given.get(name)) for name, part in description.items()}
    for alias, (name, key) in aliases.items():
        value = values.get(alias)
        if value is not None and begun[name][1].setdefault(key, value) != value:
            raise ValueError(
                f"`{alias}` and `{key}` of the {name} must be the same. "
                f"Received: {value} and {begun[name][1][key]}."
            )
    for options in (flat, *(table for _, table in begun.values())):
        check_given_once(options)
    resolved = {
        name: (part.resolved(*begun[name], flat), begun[name][1])
        for name, part in description.items()
    }
    _refuse_unknown(description, resolved, {**flat, **given}, owner, aliases)
    _refuse_without_effect(description, resolved, flat, owner)
    parts = {}
    for name, part in description.items():
        base, table = begun[name]
        own = {key: flat[key] for key in part.options(resolved[name][0]) if key in flat}
        # An option given for this part overrides the flat option.
        parts[name] = base.with_options(**overridden(own, table))
    return parts


def check_description(description, owner) -> None:
    """Checks that no option of a kind of model belongs to two parts, except to both stacks.

    Raises:
        TypeError: If there is such an option.
    """
    owners = {}
    for name, part in description.items():
        for key in part.options():
            other = owners.setdefault(key, name)
            if other != name and not {other, name} <= {*STACKS}:
                raise TypeError(f"{owner}: `{key}` is an option of both `{other}` and `{name}`.")


def _check_given(description, values):
    """Raises `TypeError` for a part that is neither a configuration nor a dictionary."""
    for name, part in description.items():
        value = part.begin(values.get(name))[0]
        if isinstance(value, PartConfig):
            continue
        whole, options = type(part.default).__name__, {**part.default.to_flat()}
        example = next(key for key in part.options() if key in options)
        table = "a dictionary of its options"
        raise TypeError(
            f"`{name}` must be a `{whole}`, {table} or a string, its `{part.kind}`. "
            f"Received: {name}={value!r}."
            if part.kind
            else f"`{name}` must be a `{whole}` or {table}, such as "
            f"{ {example: options[example]} }. Received: {name}={value!r}."
        )


def _refuse_without_effect(description, begun, flat, owner):
    """Raises `ValueError` for options without effect on the given parts, unless at the default."""
    known = known_options(description)
    effective = {key for name, part in description.items() for key in part.options(begun[name][0])}
    bases = {name: begun[name][0] for name in STACKS if name in begun}
    kinds = [
        f"{name}={getattr(base, 'mixer' if base.has_blocks else description[name].kind)!r}"
        for name, base in bases.items()
    ]
    networks = [base.block.feed_forward for base in bases.values() if base.has_blocks]
    kinds += [f"feed_forward={one!r}" for one in {*networks} if not one.is_sublayer]
    for key, value in flat.items():
        if key not in effective and value != known[key].default:
            raise ValueError(
                f"`{key}` has no effect on a `{owner}` with {', '.join(kinds)}. "
                f"Received: {key}={value!r}."
            )


def _refuse_unknown(description, begun, given, owner, aliases):
    known = known_options(description)
    unknown = [key for key in given if key not in known and key not in description]
    for name, part in description.items():
        base, table = begun[name]
        unknown += [
            f"{name}.{key}" for key in table if key != part.kind and (key not in part.options(base))
        ]
    if unknown:
        raise ValueError(
            f"`{owner}` has the fields {', '.join([*known, *aliases])}. "
            f"Received: {', '.join(unknown)}."
        )
