"""`Training` classes of the tasks, one for each."""

import importlib
from typing import Any


def training_class(task) -> type[Any]:
    """Imports the `Training` class of a task.

    Args:
        task: The `Task`, whose `training` names the class.
    """
    module, _, name = task.training.partition(":")
    return getattr(importlib.import_module(module), name)
