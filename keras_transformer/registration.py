"""Registration of the layers with Keras, so that `keras.saving.load_model` knows them."""

import importlib
import importlib.abc
import importlib.util
import sys

MODELS = ("transformer", "language_model", "classifier")


def register():
    """Registers the layers now, or as soon as Keras is imported, which takes seconds."""
    if "keras" in sys.modules:
        _import_models()
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds Keras once, with a loader that also imports the layers."""

    def find_spec(self, name, path=None, target=None):
        if name != "keras":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        _import_models()


def _import_models():
    for name in MODELS:
        importlib.import_module(f"keras_transformer.models.{name}")
