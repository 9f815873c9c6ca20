"""Checks of arguments. Every error is one line: the argument, the rule and what was received."""

import functools
import math
import numbers
import typing
from collections.abc import Collection
from typing import Annotated, Any

from keras_transformer import activations

SHOWN = 60  # maximum number of characters of a value in an error


def is_integer(value: Any) -> bool:
    """Returns `True` for a Python or NumPy integer, but not for a boolean."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """Returns `True` for a number that is finite as a float, but not for a boolean."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer of hundreds of digits
        return False


def check_count(name: str, value: Any, optional: bool = False, least: int = 1) -> None:
    """Requires an integer of at least `least`; with `optional`, `None` is accepted as well."""
    if optional and value is None:
        return
    choice = ", or None" if optional else ""
    if not is_integer(value):
        raise TypeError(f"`{name}` must be an integer{choice}. Received: {name}={value!r}.")
    if value < least:
        raise ValueError(f"`{name}` must be at least {least}{choice}. Received: {name}={value}.")


def check_rate(name: str, value: Any) -> None:
    """Requires a dropout rate: a number of at least 0 and below 1."""
    _check_number(name, value)
    if not 0 <= value < 1:
        raise ValueError(f"`{name}` must be at least 0 and below 1. Received: {name}={value}.")


def check_share(name: str, value: Any) -> None:
    """Requires a number from 0 to 1."""
    _check_number(name, value)
    if not 0 <= value <= 1:
        raise ValueError(f"`{name}` must be from 0 to 1. Received: {name}={value}.")


def check_finite(name: str, value: Any) -> None:
    """Requires a finite number."""
    _check_number(name, value)
    if not is_finite(value):
        raise ValueError(f"`{name}` must be finite. Received: {name}={value}.")


def check_not_negative(name: str, value: Any) -> None:
    """Requires a finite number of at least 0."""
    _check_number(name, value)
    if not 0 <= value < float("inf"):
        raise ValueError(f"`{name}` must be at least 0 and finite. Received: {name}={value}.")


def check_positive(name: str, value: Any, optional: bool = False) -> None:
    """Requires a finite number above 0; with `optional`, `None` is accepted as well."""
    if optional and value is None:
        return
    _check_number(name, value)
    if not 0 < value < float("inf"):
        raise ValueError(f"`{name}` must be above 0 and finite. Received: {name}={value}.")


def check_choice(name: str, value: Any, choices: Collection[str]) -> None:
    """Requires one of `choices`."""
    if value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(choices)}. Received: {name}={value!r}."
        )


def check_activation(name: str, value: Any) -> None:
    """Requires the name of an activation; see `activations.get`."""
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be the name of an activation. Received: {name}={value!r}.")
    if value not in activations.COMMON:
        activations.get(value)


def check_flag(name: str, value: Any, optional: bool = False) -> None:
    """Requires `True` or `False`; with `optional`, `None` is accepted as well."""
    if not isinstance(value, bool) and not (optional and value is None):
        choices = "True, False or None" if optional else "True or False"
        raise TypeError(f"`{name}` must be {choices}. Received: {name}={value!r}.")


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"`{name}` must be a number. Received: {name}={value!r}.")


def check_fields(config: Any) -> None:
    """Checks every field of a dataclass against its annotation.

    The checks of `Annotated[int, check_count]` are called with name and value. A `Literal` is a
    choice of strings, and a `bool` is a flag. Other types are not checked.
    """
    for name, kind in typing.get_type_hints(type(config), include_extras=True).items():
        value = getattr(config, name)
        if typing.get_origin(kind) is typing.Annotated:
            for check in kind.__metadata__:
                check(name, value)
        elif typing.get_origin(kind) is typing.Literal:
            check_choice(name, value, typing.get_args(kind))
        elif kind is bool:
            check_flag(name, value)


def fields_difference(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    """Returns the first difference of two dictionaries with the same keys; `None` if equal.

    It is the end of a sentence: the field and its two values, or of lists of equal length the first
    item that differs.
    """
    for name in ours:
        one, other = ours[name], theirs[name]
        if one == other:
            continue
        if isinstance(one, (list, tuple)) and len(one) == len(other):
            pairs = enumerate(zip(one, other, strict=True), start=1)
            number, (one, other) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
            return f"number {number} of `{name}` is {_shown(one)} and {_shown(other)}"
        return f"`{name}` is {_shown(one)} and {_shown(other)}"
    return None


def _shown(value):
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


# Types of options.
Count = Annotated[int, check_count]
OptionalCount = Annotated[int | None, functools.partial(check_count, optional=True)]
OptionalNumber = Annotated[float | None, functools.partial(check_positive, optional=True)]
OptionalFlag = Annotated[bool | None, functools.partial(check_flag, optional=True)]
AtLeastTwo = Annotated[int, functools.partial(check_count, least=2)]
Rate = Annotated[float, check_rate]


class BackendError(ValueError):
    """Error for something that only TensorFlow can do, with another backend of Keras."""


def require_tensorflow(what: str) -> None:
    """Requires TensorFlow as the backend of Keras.

    Args:
        what: What needs it, at the beginning of the error: a plural, such as `"searches"`.

    Raises:
        BackendError: If Keras uses another backend.
    """
    import keras  # takes seconds, and other checks do not need it

    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise BackendError(
            f"{what} need TensorFlow as the backend of Keras; only layers and models work on "
            f"{backend}. Set KERAS_BACKEND=tensorflow before Keras is imported; a saved model can "
            "be loaded there."
        )
