"""Layers of the paper in `keras.ops`, one concept per file, and the values that they take."""

from keras_transformer.lazy import lazy_names
from keras_transformer.registration import register

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__, register)
