"""Objects by name, such as tasks and formats of exports, that are imported on first use."""

import importlib
import threading
from collections.abc import Iterator, MutableMapping
from typing import Any


class Registry(MutableMapping):
    """Objects by name, in order.

    Args:
        package: Package of the modules in `places`.
        places: Dictionary from names to the places of objects, or of classes that are called
            without arguments, such as `"translation.task:TranslationTask"`. A module is imported
            when its object is first looked up.
    """

    def __init__(self, package: str, places: dict[str, str]):
        self._package, self._objects = package, dict[str, Any](places)
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> Any:
        """Returns the object of a name."""
        if isinstance(place := self._objects[name], str):
            module, _, attribute = place.partition(":")
            made = getattr(importlib.import_module(f"{self._package}.{module}"), attribute)
            made = made() if isinstance(made, type) else made
            with self._lock:  # threads that look it up at the same time get one object
                if isinstance(self._objects[name], str):
                    self._objects[name] = made
        return self._objects[name]

    def __contains__(self, name: object) -> bool:
        """Returns whether there is an object of this name, without importing it."""
        return name in self._objects

    def __setitem__(self, name: str, value: Any) -> None:
        """Adds an object."""
        self._objects[name] = value

    def __delitem__(self, name: str) -> None:
        """Removes an object."""
        del self._objects[name]

    def __iter__(self) -> Iterator[str]:
        """Yields the names in order."""
        return iter(self._objects)

    def __len__(self) -> int:
        """Returns the number of objects."""
        return len(self._objects)
