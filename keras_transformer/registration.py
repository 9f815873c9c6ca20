"""Registration of layers and models with Keras, so that `keras.saving.load_model` finds them."""

import importlib
import sys

PUBLIC = "keras_transformer.layers", "keras_transformer.models"
_started = False


def register(value: object = object) -> None:
    """Imports all public layers and models, which registers them, if Keras is imported.

    Importing Keras takes seconds, so this function does not do it.

    Args:
        value: What a program imports. Functions register nothing: `open` and `from_pretrained`
            import what they need and no other task.
    """
    global _started
    if _started or "keras" not in sys.modules or not isinstance(value, type):
        return
    _started = True
    for package in map(importlib.import_module, PUBLIC):
        for name in package.__all__:
            getattr(package, name)
