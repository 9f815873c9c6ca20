"""Tokenizers, which convert strings to token ids and back."""

from keras_transformer.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
