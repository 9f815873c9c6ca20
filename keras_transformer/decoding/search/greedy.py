"""Greedy search as a value."""

import dataclasses

from keras_transformer.decoding.greedy import greedy_decode
from keras_transformer.decoding.search.base import Search


@dataclasses.dataclass(frozen=True)
class Greedy(Search):
    """Takes the most probable token at each step: see `greedy_decode`."""

    def _decode(self, predictor, source, n_best, longest, options):
        return greedy_decode(predictor, source, cache_length=longest, **options)

    def __str__(self):
        return "greedy"
