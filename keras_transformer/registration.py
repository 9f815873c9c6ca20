"""Registration of layers and models with Keras, so that `keras.saving.load_model` finds them."""

import importlib
import sys

PUBLIC = "keras_transformer.layers", "keras_transformer.models"
_started = False


def register() -> None:
    """Imports all public layers and models, which registers them, if Keras is imported.

    Importing Keras takes seconds, so this function does not do it.
    """
    global _started
    if _started or "keras" not in sys.modules:
        return
    _started = True
    for package in map(importlib.import_module, PUBLIC):
        for name in package.__all__:
            getattr(package, name)
