"""Position encodings and scores as values: built-in names, registered classes and objects."""

import json
from collections.abc import Collection
from typing import Any, ClassVar

from keras_transformer.checks import check_choice

KERAS_OBJECT = "keras_object"  # key of an object of Keras among the arguments of another object


class Variant:
    """Base class of the values of an option that users can extend: a position or a score.

    An option accepts a built-in name, an object, or the name under which its class is registered
    with `keras.saving.register_keras_serializable`, such as `"my_package>MyPosition"`. Two objects
    are equal if their classes and arguments are.

    Attributes:
        option: Name of the option.
    """

    option: ClassVar[str]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Returns the object that `get_config` described."""
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _compared(other) == _compared(self)

    def __hash__(self) -> int:
        return hash((type(self), json.dumps(_compared(self), sort_keys=True, default=repr)))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.get_config().items())
        return f"{type(self).__name__}({arguments})"


def own_class(option: str, value: Any) -> type[Variant] | None:
    """Returns the class of an object or of a registered name; `None` for any other value.

    Args:
        option: Name of the option.
        value: A value of the option.
    """
    kind = type(value)
    if isinstance(value, str) and ">" in value:
        import keras  # takes seconds, and built-in names do not need it

        kind = keras.saving.get_registered_object(value)
    is_variant = isinstance(kind, type) and issubclass(kind, Variant)
    return kind if is_variant and kind.option == option else None


def check_variant(option: str, builtin: Collection[str], name: str, value: Any) -> None:
    """Requires a built-in name, an object of a registered class, or the name of such a class.

    Args:
        option: Name of the option whose objects are accepted.
        builtin: The built-in names.
        name: Name of the argument.
        value: The value.
    """
    if isinstance(value, str) and ">" not in value:
        check_choice(name, value, builtin)
        return
    kind = own_class(option, value)
    if kind is None:
        raise ValueError(
            f"`{name}` must be one of {', '.join(builtin)}, an object, or the name of a class that "
            f"is registered with Keras and imported. Received: {name}={value!r}."
        )
    if isinstance(value, Variant):
        registered_name(value)


def registered_name(value: Variant) -> str:
    """Returns the name under which the class of an object is registered.

    Raises:
        ValueError: If it is not registered, so that a saved model could not be loaded.
    """
    import keras

    name = keras.saving.get_registered_name(type(value))
    if keras.saving.get_registered_object(name) is not type(value):
        raise ValueError(
            f"`{value.option}` must be of a registered class, so that a saved model can be loaded "
            "again: decorate it with `@keras.saving.register_keras_serializable()`. "
            f"Received: {value.option}={value!r}."
        )
    return name


def plain(value: Any) -> Any:
    """Returns a value with dictionaries of plain values in place of objects.

    The arguments of an object may themselves be such objects, or objects of Keras.
    """
    if isinstance(value, Variant):
        config = _with(_described, value.get_config())
        return {"class_name": registered_name(value), "config": config}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def restored(option: str, value: Any) -> Any:
    """Returns the object that `plain` described; any other value is returned unchanged.

    Args:
        option: Name of the option.
        value: A value of the option.

    Raises:
        ValueError: If its class is not registered: the module that defines it is not imported.
    """
    if not isinstance(value, dict) or "class_name" not in value:
        return value
    kind = own_class(option, value["class_name"])
    if kind is None:
        raise ValueError(
            f"`{option}` needs the class {value['class_name']!r}, which is not registered with "
            "Keras: import the module that defines it first."
        )
    return kind.from_config(_with(_original, value.get("config", {})))


def _with(change, value):
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
        return plain(value)
    if _is_configured(value):
        import keras

        return {KERAS_OBJECT: keras.saving.serialize_keras_object(value)}
    return value


def _original(value):
    """Returns the object that `_described` described; any other value is returned unchanged."""
    if not isinstance(value, dict) or {*value} not in ({"class_name", "config"}, {KERAS_OBJECT}):
        return value
    import keras

    if KERAS_OBJECT in value:
        return keras.saving.deserialize_keras_object(value[KERAS_OBJECT])
    name = value["class_name"]
    kind = keras.saving.get_registered_object(name) if isinstance(name, str) else None
    is_variant = isinstance(kind, type) and issubclass(kind, Variant)
    return restored(kind.option, value) if is_variant else value


def _compared(value):
    """Returns an argument of an object in a form in which equal objects are equal."""
    if isinstance(value, Variant) or _is_configured(value):
        return {"class": type(value).__qualname__, "config": _with(_compared, value.get_config())}
    return value


def _is_configured(value):
    """Returns whether a value is an object with a configuration, such as an initializer."""
    return hasattr(value, "get_config") and not isinstance(value, type)
