"""Exports of trained models to formats that run without this package."""

from keras_transformer.lazy import lazy_names

# Every format depends on other libraries, which are imported when it is used.
__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
