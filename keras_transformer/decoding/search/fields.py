"""Searches as dictionaries of plain values, for the files that keep one."""

import dataclasses

from keras_transformer.checks import is_integer
from keras_transformer.decoding.search.beam import Beam
from keras_transformer.decoding.search.greedy import Greedy

KINDS = {"greedy": Greedy, "beam": Beam}
KIND = "search"  # its key


def as_dict(search):
    """Returns a `Greedy` or `Beam` as a dictionary: `search`, which of them, and its fields."""
    (name,) = (name for name, kind in KINDS.items() if isinstance(search, kind))
    fields = dataclasses.asdict(search).items()  # JSON does not know NumPy's integers
    return {KIND: name, **{key: int(v) if is_integer(v) else v for key, v in fields}}


def from_dict(fields):
    """Returns the `Greedy` or `Beam` that `as_dict` made a dictionary of.

    Raises:
        ValueError: If it is no such dictionary.
    """
    fields = dict(fields) if isinstance(fields, dict) else {}
    name = fields.pop(KIND, None)
    if name not in KINDS:
        raise ValueError(f"`{KIND}` must be one of {', '.join(KINDS)}. Received: {name!r}.")
    try:
        return KINDS[name](**fields)
    except TypeError as error:
        raise ValueError(f"no {name} has these fields: {error}") from error
