"""Registration of layers and models with Keras, so that `keras.saving.load_model` finds them."""

import importlib
import sys
import threading

PUBLIC = "keras_transformer.layers", "keras_transformer.models"
_done = False
_thread = threading.local()  # a lock could wait for an import that waits for the lock


def register(value: object = object) -> None:
    """Imports all public layers and models, which registers them, if Keras is imported.

    Importing Keras takes seconds, so this function does not do it.

    Args:
        value: What a program imports. Functions register nothing: `open` and `from_pretrained`
            import what they need and no other task.
    """
    global _done
    is_running = getattr(_thread, "is_running", False)  # the imports below come here again
    if _done or is_running or "keras" not in sys.modules or not isinstance(value, type):
        return
    _thread.is_running = True
    try:
        for package in map(importlib.import_module, PUBLIC):
            for name in package.__all__:
                getattr(package, name)
        _done = True  # otherwise, the next name tries again
    finally:
        _thread.is_running = False
