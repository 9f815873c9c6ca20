"""Checks of arguments: one line that names the argument, the rule and what was received."""

import numbers
import typing

from keras_transformer import activations


def is_integer(value):
    """Whether a value is an integer, of Python or NumPy, and not `True` or `False`."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_count(name, value, optional=False, least=1):
    """Refuses what is not an integer of at least `least`, or `None` where that is a choice."""
    if optional and value is None:
        return
    choice = ", or None" if optional else ""
    if not is_integer(value):
        raise TypeError(f"`{name}` must be an integer{choice}. Received: {name}={value!r}.")
    if value < least:
        raise ValueError(f"`{name}` must be at least {least}{choice}. Received: {name}={value}.")


def check_rate(name, value):
    """Refuses what is not a rate of dropout, from 0 to below 1."""
    _check_number(name, value)
    if not 0 <= value < 1:
        raise ValueError(f"`{name}` must be at least 0 and below 1. Received: {name}={value}.")


def check_positive(name, value, optional=False):
    """Refuses what is not a number above 0, or `None` where that is a choice."""
    if optional and value is None:
        return
    _check_number(name, value)
    if not 0 < value < float("inf"):
        raise ValueError(f"`{name}` must be above 0 and finite. Received: {name}={value}.")


def check_choice(name, value, choices):
    """Refuses what is not one of `choices`."""
    if value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(choices)}. Received: {name}={value!r}."
        )


def check_activation(name, value):
    """Refuses what is not the name of an activation, see `activations.get`."""
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be the name of an activation. Received: {name}={value!r}.")
    if value not in activations.COMMON:
        activations.get(value)


def check_flag(name, value, optional=False):
    """Refuses what is neither `True` nor `False`, nor `None` if it is `optional`."""
    if not isinstance(value, bool) and not (optional and value is None):
        choices = "True, False or None" if optional else "True or False"
        raise TypeError(f"`{name}` must be {choices}. Received: {name}={value!r}.")


def _check_number(name, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"`{name}` must be a number. Received: {name}={value!r}.")


def check_fields(config):
    """Checks every field of a dataclass as its type demands.

    `Annotated[int, check_count]` calls `check_count` with name and value, a `Literal` is a choice
    of strings, and `bool` a flag. Other types are not checked.
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
