"""Registration of the layers with Keras, so that `keras.saving.load_model` knows them."""

import contextlib
import importlib
import importlib.abc
import importlib.util
import sys

MODELS = (
    *("transformer", "language_model", "classifier", "token_classifier", "span_predictor"),
    *("image_classifier", "series_regressor"),
)


def register():
    """Registers the layers now, or as soon as Keras is imported, which takes seconds."""
    if "keras" in sys.modules:
        import_models()
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds Keras, with a loader that also imports the layers.

    It stays until Keras is really imported: others, TensorFlow among them, only look for it.
    """

    def __init__(self):
        self.looking = False

    def find_spec(self, name, path=None, target=None):
        if name != "keras" or self.looking:
            return None
        self.looking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.looking = False
        if spec is not None:
            spec.loader = _Loader(spec.loader, self)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader, finder):
        self.loader, self.finder = loader, finder

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self.finder)
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        import_models()


def import_models():
    """Imports every model, and with them the layers: that registers them."""
    for name in MODELS:
        importlib.import_module(f"keras_transformer.models.{name}")
