"""The training of each task."""

import importlib


def training_class(task):
    """Returns the class of a task's training, a `Training`.

    Args:
        task: The `Task`, which says where the class is.
    """
    module, _, name = task.training.partition(":")
    return getattr(importlib.import_module(module), name)
