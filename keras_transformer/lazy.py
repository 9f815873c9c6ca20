"""Lazy import: a package imports each of its public names on first use."""

import ast
import importlib
import pathlib
import sys
from collections.abc import Callable
from typing import Any


def lazy_names(
    package: str, file: str, then: Callable[[Any], object] = lambda value: None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Returns `__getattr__`, `__dir__` and `__all__` for a package whose stub lists its names.

    Importing the package is then fast, although importing TensorFlow takes seconds. Type checkers
    and editors read the same stub, `__init__.pyi`. Its lines have the form
    `from .module import Name as Name`, or `from . import package as package`.

    Args:
        package: `__name__` of the package.
        file: `__file__` of the package.
        then: Function to call with each value after it is imported.
    """
    stub = ast.parse(pathlib.Path(file).with_suffix(".pyi").read_text("utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    modules = {
        alias.name: f"{'.' * node.level}{node.module}" if node.module else None
        for node in imports
        for alias in node.names
    }

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = modules[name]
        if module is None:
            return importlib.import_module(f".{name}", package)
        value = getattr(importlib.import_module(module, package), name)
        setattr(sys.modules[package], name, value)
        then(value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get, names, sorted(modules)


class LazyModule:
    """A module that is imported when one of its attributes is first read.

    Args:
        name: Full name of the module.
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self._name), name)
        setattr(self, name, value)
        return value
