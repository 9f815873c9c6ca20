"""Pipelines, which answer with a trained model, and their results."""

from keras_transformer.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
