"""Conversion of searches to and from dictionaries of plain values, for files."""

import dataclasses
from typing import Any

from keras_transformer.checks import is_integer
from keras_transformer.decoding.search.base import Search
from keras_transformer.decoding.search.beam import Beam
from keras_transformer.decoding.search.best_path import BestPath
from keras_transformer.decoding.search.greedy import Greedy

KINDS = {"greedy": Greedy, "beam": Beam, "ctc": BestPath}
KIND = "search"  # key of the kind of search in a dictionary


def as_dict(search) -> dict[str, Any]:
    """Returns a dictionary with the kind of a search in `KINDS` under `search`, and its fields."""
    (name,) = (name for name, kind in KINDS.items() if isinstance(search, kind))
    fields = dataclasses.asdict(search).items()  # JSON cannot hold NumPy's integers
    return {KIND: name, **{key: int(v) if is_integer(v) else v for key, v in fields}}


def from_dict(fields) -> Search:
    """Returns the search from a result of `as_dict`.

    Raises:
        ValueError: If `fields` is not a result of `as_dict`.
    """
    fields = dict(fields) if isinstance(fields, dict) else {}
    name = fields.pop(KIND, None)
    if name not in KINDS:
        raise ValueError(f"`{KIND}` must be one of {', '.join(KINDS)}. Received: {name!r}.")
    try:
        return KINDS[name](**fields)
    except TypeError as error:
        raise ValueError(f"no {name} has these fields: {error}") from error
