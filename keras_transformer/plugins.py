"""Modules of other packages that add tasks, data, layers, kinds of positions, or activations.

Importing such a module registers what it adds, with `tasks.register`, `register_source`,
`keras.saving.register_keras_serializable`, or as the `kind` of a `Variant`. A package names its
modules as entry points:

    [project.entry-points.keras_transformer]
    parity = "parity.task"
"""

import importlib
import importlib.metadata
import os
import sys
from collections.abc import Callable, Collection

GROUP = "keras_transformer"  # of entry points
REMEDY = (
    "import the module that registers it, on the command line with --module, or name the module "
    f"as an entry point {GROUP} of its package"
)


def import_plugins(modules: Collection[str], warn: Callable[[str], None]) -> None:
    """Imports the modules that installed packages name as entry points, and some others.

    Args:
        modules: Names of further modules; as with `python -m`, also of files in the current folder.
        warn: Function that is called with a line of text if the module of an installed package
            cannot be imported.

    Raises:
        ValueError: If one of `modules` is no name of a module or cannot be imported.
    """
    for point in importlib.metadata.entry_points(group=GROUP):
        try:
            importlib.import_module(point.module)
        except (Exception, SystemExit) as error:  # must not prevent a command without it
            warn(f"the plug-in {point.name} cannot be imported: {_reason(error)}")
    if modules and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name in modules:
        if name.endswith(".py") or not all(map(str.isidentifier, name.split("."))):
            raise ValueError(
                f"a module has a name such as parity.task, which is no path. Received: {name!r}."
            )
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            raise ValueError(f"the module {name} cannot be imported: {_reason(error)}") from error


def _reason(error):
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}{text and ': '}{text}."
