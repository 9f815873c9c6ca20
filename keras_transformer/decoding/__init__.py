"""Decoding: searches over one step function with a key/value cache (section 6.1)."""

from keras_transformer.decoding.greedy import greedy_decode

__all__ = ["greedy_decode"]
