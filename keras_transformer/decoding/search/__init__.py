"""Searches as values: `Greedy`, `Beam`, `BestPath` and `Sample`, with settings and checks."""

from keras_transformer.decoding.search.base import Found, Search, check_search
from keras_transformer.decoding.search.beam import Beam
from keras_transformer.decoding.search.best_path import BestPath
from keras_transformer.decoding.search.fields import as_dict, from_dict
from keras_transformer.decoding.search.greedy import Greedy
from keras_transformer.decoding.search.sample import Sample

__all__ = [
    "Beam",
    "BestPath",
    "Found",
    "Greedy",
    "Sample",
    "Search",
    "as_dict",
    "check_search",
    "from_dict",
]
