"""Decoding: searches over one step function with a key/value cache (section 6.1)."""

from keras_transformer.decoding.beam import beam_decode
from keras_transformer.decoding.constraints import Constraints
from keras_transformer.decoding.greedy import greedy_decode
from keras_transformer.decoding.sampling import sample_decode
from keras_transformer.decoding.scoring import score
from keras_transformer.decoding.search import Beam, Found, Greedy, Sample

__all__ = [
    "Beam",
    "Constraints",
    "Found",
    "Greedy",
    "Sample",
    "beam_decode",
    "greedy_decode",
    "sample_decode",
    "score",
]
