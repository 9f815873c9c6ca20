"""Lazy import: a package imports each of its public names on first use."""

import ast
import difflib
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
    modules = _stub(pathlib.Path(file).with_suffix(".pyi"))

    def get(name: str) -> Any:
        if name not in modules:
            hint = "" if name.startswith("_") else _hint(name, package, file)
            message = f"module {package!r} has no attribute {name!r}.{hint}"
            raise AttributeError(message, name=name)  # without `obj`, Python adds no hint itself
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


def _stub(path):
    """Returns the modules of the names in a stub, relative to it; `None` for a package."""
    imports = [
        node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)
    ]
    return {
        alias.name: f"{'.' * node.level}{node.module}" if node.module else None
        for node in imports
        for alias in node.names
    }


def _hint(name, package, file):
    """Returns a sentence with the place of a name that another package has, or a similar name."""
    root, *inner = package.split(".")
    folder = pathlib.Path(file).parents[len(inner)]
    places = {root: _stub(folder / "__init__.pyi")}
    for namespace in [key for key, module in places[root].items() if module is None]:
        files = (folder / namespace / f"__init__.{suffix}" for suffix in ("pyi", "py"))
        places[f"{root}.{namespace}"] = _stub(next(file for file in files if file.is_file()))
    places = {package: places.pop(package, {}), **places}
    similar = {key: place for place in reversed(places) for key in places[place]}
    closest = difflib.get_close_matches(name, similar, n=1, cutoff=0.75)
    if not closest:
        return ""
    key, place = closest[0], similar[closest[0]]
    if key == name:
        return f" It is in {place}."
    return f" Did you mean {key}?" if place == package else f" Did you mean {place}.{key}?"


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
