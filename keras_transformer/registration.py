"""Registration of the layers with Keras, so that `keras.saving.load_model` finds them."""

import contextlib
import importlib
import importlib.util
import sys
from typing import Any

MODELS = (
    *("models.transformer", "models.language_model", "models.classifier"),
    *("models.token_classifier", "models.span_predictor", "models.image_classifier"),
    *("models.series_regressor", "models.embedder", "models.masked_language_model"),
    "tasks.speech_recognition.model",
)


def register() -> None:
    """Registers the layers now if Keras is imported, otherwise as soon as it is.

    Importing Keras takes seconds, so this function does not do it.
    """
    if "keras" in sys.modules:
        import_models()
    else:
        sys.meta_path.insert(0, _Finder())


# A hook, because `import keras_transformer` must register the layers in any order of imports, as
# users of Keras expect, and must not import Keras itself: processes that only run a .tflite file
# start in 0.2 s instead of 4 s and need 300 MB less without it.
# `importlib.abc` has base classes for the next two, but imports much more.
class _Finder:
    """Finder of the module `keras` whose loader also imports the layers.

    It stays installed until Keras is really imported, because TensorFlow and others call
    `find_spec` without importing the module.
    """

    def __init__(self):
        self.is_searching = False

    def find_spec(self, name, path=None, target=None):
        if name != "keras" or self.is_searching:
            return None
        self.is_searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.is_searching = False
        if spec is not None:
            loader: Any = _Loader(spec.loader, self)
            spec.loader = loader
        return spec


class _Loader:
    """Loader that runs Keras's own loader and then imports the layers."""

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


def import_models() -> None:
    """Imports every model and with it all layers; importing a layer registers it."""
    for name in MODELS:
        importlib.import_module(f"keras_transformer.{name}")
