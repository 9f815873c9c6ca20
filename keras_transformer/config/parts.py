"""Parts of a model's configuration, and the part that each flat option belongs to."""

import dataclasses
from typing import Any

PARTS = ("input", "encoder", "decoder", "head")
STACKS = ("encoder", "decoder")


@dataclasses.dataclass(frozen=True)
class Part:
    """One part of a kind of model.

    Attributes:
        default: The configuration without changes.
        kind: Option that a string in the place of the part sets: `decoder="ssru"` is
            `decoder={"autoregression": "ssru"}`. `None`: there is none.
        leave_out: Options that have no effect in this part.
        more_kinds: Values of `kind` other than those of the option.
    """

    default: Any
    kind: str | None = None
    leave_out: tuple = ()
    more_kinds: tuple = ()

    def options(self, base=None):
        """Returns the fields of the flat options, by name.

        Args:
            base: The configuration that they change. `None`: any that the part may have.
        """
        options = (self.default if base is None else base).options()
        left_out = (*self.leave_out, self.kind)
        return {name: field for name, field in options.items() if name not in left_out}

    def kind_option(self):
        """Returns the field of the option that a string sets, or `None`."""
        return self.default.options().get(self.kind)

    def begin(self, given):
        """Returns the configuration that options change, and the options of this part alone.

        Args:
            given: A configuration, a dictionary of options, a string for the kind, or `None`.
        """
        if isinstance(given, str) and self.kind:
            given = {self.kind: given}
        if given is None or isinstance(given, dict):
            return self.default, dict(given or {})
        return given, {}

    def from_dict(self, fields):
        """Returns the configuration that its `to_dict` described."""
        return type(self.default).from_dict(fields)


def known_options(description):
    """Returns the fields of all flat options of a kind of model, by name."""
    return {key: field for part in description.values() for key, field in part.options().items()}


def effective_options(description, given):
    """Returns the names of the flat options that have an effect beside what is given for parts."""
    bases = {name: part.begin(given.get(name))[0] for name, part in description.items()}
    return {key for name, part in description.items() for key in part.options(bases[name])}


def distribute(description, aliases, values, owner):
    """Returns the configurations of the parts that flat options describe, by name.

    Args:
        description: The `Part`s of a kind of model, by name.
        aliases: Names of options that belong to one stack alone, each with the name of the stack
            and of its option.
        values: Options by name, and under the name of a part what differs in it: see `Part.begin`.
        owner: Name of the class of the configuration.

    Raises:
        ValueError: If an option belongs to no part, or has no effect.
    """
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
    _refuse_unknown(description, begun, {**flat, **given}, owner, aliases)
    _refuse_without_effect(description, begun, flat, owner)
    parts = {}
    for name, part in description.items():
        base, table = begun[name]
        own = {key: flat[key] for key in part.options(base) if key in flat}
        # An option of this part alone takes the place of the model's.
        parts[name] = type(base).from_flat(**{**base.to_flat(), **own, **table})
    return parts


def check_description(description, owner):
    """Refuses a kind of model in which an option belongs to two parts other than its stacks.

    Raises:
        TypeError: If there is one.
    """
    owners = {}
    for name, part in description.items():
        for key in part.options():
            other = owners.setdefault(key, name)
            if other != name and not {other, name} <= {*STACKS}:
                raise TypeError(f"{owner}: `{key}` is an option of both `{other}` and `{name}`.")


def _refuse_without_effect(description, begun, flat, owner):
    """Refuses options that the given kinds of parts lack, unless they are at their defaults."""
    known = known_options(description)
    effective = {key for name, part in description.items() for key in part.options(begun[name][0])}
    kinds = [
        f"{name}={getattr(base, description[name].kind)!r}"
        for name, (base, _) in begun.items()
        if hasattr(base, description[name].kind or "")
    ]
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
