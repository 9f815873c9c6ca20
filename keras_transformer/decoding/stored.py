"""Conversion of searches to and from dictionaries of plain values, for files."""

import dataclasses
from typing import Any

from keras_transformer.checks import is_integer
from keras_transformer.decoding.beam import Beam
from keras_transformer.decoding.best_path import BestPath
from keras_transformer.decoding.greedy import Greedy
from keras_transformer.decoding.sample import Sample
from keras_transformer.decoding.search import Search

KINDS = {kind.word: kind for kind in (Greedy, Beam, BestPath, Sample)}  # of a run
EXPORTED = {kind.word: kind for kind in (Greedy, Beam, Sample)}
KIND = "search"  # key of the kind of search in a dictionary


def as_dict(search, kinds=KINDS) -> dict[str, Any]:
    """Returns a dictionary with the word of a search in `kinds` under `search`, and its fields."""
    if not isinstance(search, tuple(kinds.values())):
        raise TypeError(f"No file holds this search. Received: search={search!r}.")
    fields = dataclasses.asdict(search).items()  # JSON cannot hold NumPy's integers
    return {KIND: search.word, **{key: int(v) if is_integer(v) else v for key, v in fields}}


def from_dict(fields, kinds=KINDS) -> Search:
    """Returns the search from a result of `as_dict`.

    Args:
        fields: The result.
        kinds: Dictionary of the kinds of searches by their words.

    Raises:
        ValueError: If `fields` is not a result of `as_dict`.
    """
    fields = dict(fields) if isinstance(fields, dict) else {}
    name = fields.pop(KIND, None)
    if name not in kinds:
        raise ValueError(f"`{KIND}` must be one of {', '.join(kinds)}. Received: {name!r}.")
    try:
        return kinds[name](**fields)
    except TypeError as error:
        raise ValueError(f"no {name} has these fields: {error}") from error
