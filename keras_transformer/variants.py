"""Variants of a part of a model as values: positions, and whatever else comes in several kinds."""

import dataclasses
import functools
import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Self, TypeVar, dataclass_transform

from keras_transformer.arguments import documented
from keras_transformer.checks import check_fields, is_integer

Class = TypeVar("Class", bound=type)

KERAS_OBJECT = "keras_object"  # key of an object of Keras among the arguments of another object
KIND, OPTION = "kind", "option"  # keys of a value in a table
KINDS: dict[str, dict[str, type["Variant"]]] = {}  # classes by option and kind
BASES: dict[str, type["Variant"]] = {}  # base classes by option


class UnknownKindError(ValueError):
    """Error for a kind that is not known, perhaps because its module is not imported."""


class Variant:
    """Base class of the values of an option that comes in several kinds, such as a position.

    The base class of an option names it, `option = "position"`; each class with a `kind` is one
    kind of it, under this name in configurations, TOML files and saved models. An option accepts
    the name of a kind, `"rotary"`; a table, `{"kind": "rotary", "base": 500000.0}`; or an object,
    `Rotary(base=500_000.0)`. Two objects are equal if their classes and arguments are.

    The modules of the folder `package` are imported as soon as a name is looked up. Other classes
    are known once the module that defines them is imported.

    Attributes:
        option: Name of the option.
        kind: Name of the kind.
        package: Package whose modules define the kinds of this library. Empty: kinds are defined
            where the base class is.
        default_kind: Kind of a table without `kind`. Empty: a table must name it.
        number_for: Name of an option for which an integer alone stands, in the kind `default_kind`.
            Empty: an integer is refused.
        taken_by: Name of a class that takes the option, for errors.
    """

    option: ClassVar[str]
    kind: ClassVar[str]
    package: ClassVar[str] = ""
    default_kind: ClassVar[str] = ""
    number_for: ClassVar[str] = ""
    taken_by: ClassVar[str] = "EncoderBlock"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if OPTION in vars(cls):
            BASES[cls.option] = cls
        if KIND in vars(cls):
            known = KINDS.setdefault(cls.option, {}).setdefault(cls.kind, cls)
            if _place(known) != _place(cls):
                raise ValueError(
                    f"`kind` must be unique among the values of `{cls.option}`. Received by "
                    f"{cls.__qualname__}: {cls.kind!r}, which is the kind of {known.__qualname__}."
                )
            KINDS[cls.option][cls.kind] = cls  # defined again, as in a cell of a notebook

    def __post_init__(self) -> None:
        make_fields(self)
        check_fields(self)

    @classmethod
    def kinds(cls) -> dict[str, type[Self]]:
        """Returns the classes of the option by name, in alphabetical order."""
        base: Any = BASES[cls.option]
        _import_modules(base.package)
        known: Any = KINDS[cls.option]
        return dict(sorted(known.items()))

    @classmethod
    def make(cls, value: Any, name: str | None = None) -> Self:
        """Returns an object for a name, a table or an object.

        Args:
            value: Name of a kind; a table with `kind` and options; a result of `plain`; an integer
                if the option has `number_for`; or an object, which is returned.
            name: Name of the argument, for errors. `None`: that of the option.

        Raises:
            TypeError: If an option in a table has a wrong type.
            ValueError: If there is no such kind, or an option in a table is unknown or has a wrong
                value.
        """
        name, base = name or cls.option, BASES[cls.option]
        if isinstance(value, base):
            return value
        if base.number_for and is_integer(value):
            options: dict[str, Any] = {base.number_for: value}
        else:
            options = dict(value) if isinstance(value, dict) else {KIND: value}
        kind = options.pop(KIND, cls.default_kind)
        options.pop(OPTION, None)
        found: Any = cls.kinds().get(kind) if isinstance(kind, str) else None
        if isinstance(value, dict) and not kind:
            raise ValueError(
                f"`{name}` needs a `kind`, one of {', '.join(cls.kinds())}. "
                f"Received: {name}={value!r}."
            )
        if found is None:
            from keras_transformer.plugins import REMEDY  # imports much, for an error

            raise UnknownKindError(
                f"`{name}` must be one of {', '.join(cls.kinds())}, a table with one of them as its"
                f" `kind`, or an object. For another kind, {REMEDY}. Received: {name}={value!r}."
            )
        _check_names(found, options, name)
        try:
            return found.from_config(_with(_original, options))
        except (TypeError, ValueError) as error:
            raise type(error)(f"`{name}`: {error}") from error

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        if not dataclasses.is_dataclass(self):
            return {}
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Returns the object that `get_config` described."""
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _compared(other) == _compared(self)

    def __hash__(self) -> int:
        return hash((type(self), json.dumps(_compared(self), sort_keys=True, default=repr)))

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuses a call, as of a layer."""
        raise TypeError(
            f"{self!r} is a value, not a layer, and cannot be called: pass it as the option "
            f"`{self.option}`, for example to `{self.taken_by}`."
        )

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in given_options(self).items())
        return f"{type(self).__name__}({arguments})"


@dataclass_transform(frozen_default=True, eq_default=False)
def declared(kind: Class) -> Class:
    """Class decorator of a `Variant` whose fields are its options: a frozen dataclass.

    The fields are made by `option`, and are listed in the docstring.
    """
    return documented(dataclasses.dataclass(frozen=True, eq=False, repr=False)(kind))


def make_fields(config: Any) -> None:
    """Replaces names and tables of the variants in a dataclass by objects.

    Raises:
        TypeError, ValueError: See `Variant.make` and `kind_of`.
    """
    for field in dataclasses.fields(config):
        base, value = field.metadata.get("of"), getattr(config, field.name)
        if base is not None and (value is not None or field.default is not None):
            made = base.make(value, field.name)
            kind_of(made, field.name)
            object.__setattr__(config, field.name, made)


def kind_of(value: Variant, name: str | None = None) -> str:
    """Returns the name of the kind of an object.

    Args:
        value: The object.
        name: Name of the argument, for errors. `None`: that of the option.

    Raises:
        TypeError: If its class has no hash.
        ValueError: If its class has no `kind` of its own, so that a saved model could not be
            loaded.
    """
    if type(value).__hash__ is None:
        raise TypeError(
            f"`{name or value.option}` must have a hash: decorate the class "
            f"{type(value).__qualname__} with `@keras_transformer.variants.declared` or "
            f"`@dataclasses.dataclass(frozen=True)`. Received: {value!r}."
        )
    if KIND not in vars(type(value)):
        raise ValueError(
            f"`{name or value.option}` must be of a class with a `kind` of its own, so that a "
            f"saved model can be loaded again. Received: {value!r}."
        )
    return value.kind


def given_options(value: Variant) -> dict[str, Any]:
    """Returns the options of an object that differ from their defaults."""
    config = value.get_config()
    if not dataclasses.is_dataclass(value):
        return config
    fields = {field.name: field.default for field in dataclasses.fields(value)}
    return {
        key: item
        for key, item in config.items()
        if key not in fields or (item != fields[key] and short(item) != fields[key])
    }


def plain(value: Any) -> Any:
    """Returns a value with tables of plain values in place of objects.

    The arguments of an object may themselves be such objects, or objects of Keras.
    """
    if isinstance(value, Variant):
        config = {
            key: plain(item) if key in _of(value) else _with(_described, item)
            for key, item in value.get_config().items()
        }
        if KIND in config:
            raise ValueError(
                f"an argument of {type(value).__name__} must not be called `kind`, which names the "
                "class in a saved model."
            )
        return {KIND: kind_of(value), **config}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if _is_list_of_variants(value):
        return [plain(item) for item in value]
    return value


def short(value: Any) -> Any:
    """Returns the shortest form of a value in a TOML file, without options at their defaults."""
    if isinstance(value, dict):
        return {key: short(item) for key, item in value.items()}
    if _is_list_of_variants(value):
        return [short(item) for item in value]
    if not isinstance(value, Variant):
        return value
    options = {key: short(item) for key, item in given_options(value).items()}
    if {*options} == {value.number_for} and kind_of(value) == value.default_kind:
        return options[value.number_for]
    return {KIND: kind_of(value), **_with(_described, options)} if options else kind_of(value)


def _is_list_of_variants(value):
    return isinstance(value, tuple | list) and any(isinstance(item, Variant) for item in value)


def option_names(kind: type[Variant]) -> list[str] | None:
    """Returns the names of the options of a class; `None` if it takes any."""
    parameters = inspect.signature(kind).parameters.values()
    if any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters):
        return None
    return [parameter.name for parameter in parameters]


def _check_names(kind, options, name):
    """Raises `ValueError` for options that a kind does not have, or needs and does not get."""
    known = option_names(kind)
    unknown = [] if known is None else sorted({*options} - {*known})
    if unknown:
        has = f"has the options {', '.join(known)}" if known else "has no options"
        raise ValueError(
            f"`{name}` of the kind {kind.kind!r} {has}. Received: {', '.join(unknown)}."
        )
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    required = [field.name for field in fields if field.default is dataclasses.MISSING]
    missing = [key for key in required if key not in options]
    if missing:
        raise ValueError(
            f"`{name}` of the kind {kind.kind!r} needs {', '.join(required)}. "
            f"Missing: {', '.join(missing)}."
        )


def _of(value):
    """Returns the names of the options of an object that are variants themselves."""
    fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    return {field.name for field in fields if field.metadata.get("of") is not None}


@functools.cache
def _import_modules(package):
    """Imports all modules of a package; importing a class with a `kind` makes it known."""
    if package:
        path = importlib.import_module(package).__path__
        for module in pkgutil.iter_modules(path, f"{package}."):
            importlib.import_module(module.name)


def _place(kind):
    return kind.__module__, kind.__qualname__


def _with(change: Callable[[Any], Any], value: Any) -> Any:
    """Returns a nest of values in which `change` has replaced some, or dictionaries of values."""
    changed = change(value)
    if changed is not value:
        return changed
    if isinstance(value, dict):
        return {key: _with(change, item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_with(change, item) for item in value)
    return value


def _described(value):
    """Returns an argument of an object as plain values, or unchanged if it is no object."""
    if isinstance(value, Variant):
        return {OPTION: value.option, **plain(value)}
    if _is_configured(value):
        import keras  # takes seconds, and values of this library do not need it

        return {KERAS_OBJECT: keras.saving.serialize_keras_object(value)}
    return value


def _original(value):
    """Returns the object that `_described` described; any other value is returned unchanged."""
    if not isinstance(value, dict):
        return value
    if {*value} == {KERAS_OBJECT}:
        import keras

        return keras.saving.deserialize_keras_object(value[KERAS_OBJECT])
    is_variant = KIND in value and isinstance(value.get(OPTION), str) and value[OPTION] in BASES
    return BASES[value[OPTION]].make(value) if is_variant else value


def _compared(value):
    """Returns an argument of an object in a form in which equal objects are equal."""
    if isinstance(value, Variant) or _is_configured(value):
        return {"class": type(value).__qualname__, "config": _with(_compared, value.get_config())}
    return float(value) if is_integer(value) else value  # 1 and 1.0 are equal and hash alike


def _is_configured(value):
    """Returns whether a value is an object with a configuration, such as an initializer."""
    return hasattr(value, "get_config") and not isinstance(value, type)
