"""Decoding: greedy search, beam search and sampling over one predictor interface (section 6.1)."""

from keras_transformer.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
