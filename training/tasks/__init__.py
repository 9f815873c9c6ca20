"""`Training` classes of the tasks, one for each."""

import importlib


def training_class(task):
    """Imports the `Training` class of a task.

    Args:
        task: The `Task`, whose `training` names the class.
    """
    module, _, name = task.training.partition(":")
    return getattr(importlib.import_module(module), name)
