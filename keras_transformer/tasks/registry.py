"""A table of tasks that are imported when they are first used."""

import importlib
import threading
from collections.abc import Iterator, MutableMapping
from typing import Any


class Tasks(MutableMapping):
    """Tasks by name, in order.

    Args:
        package: Package of the tasks in `places`.
        places: Dictionary from the names of tasks to the places of their classes, such as
            `"translation.task:TranslationTask"`. A task is imported when it is first looked up.
    """

    def __init__(self, package: str, places: dict[str, str]):
        self._package, self._tasks = package, dict[str, Any](places)
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> Any:
        """Returns the `Task` of a name."""
        if isinstance(place := self._tasks[name], str):
            module, _, kind = place.partition(":")
            task = getattr(importlib.import_module(f"{self._package}.{module}"), kind)()
            with self._lock:  # threads that look it up at the same time get one object
                if isinstance(self._tasks[name], str):
                    self._tasks[name] = task
        return self._tasks[name]

    def __contains__(self, name: object) -> bool:
        """Returns whether there is a task of this name, without importing it."""
        return name in self._tasks

    def __setitem__(self, name: str, task: Any) -> None:
        """Adds a `Task`."""
        self._tasks[name] = task

    def __delitem__(self, name: str) -> None:
        """Removes a task."""
        del self._tasks[name]

    def __iter__(self) -> Iterator[str]:
        """Yields the names in order."""
        return iter(self._tasks)

    def __len__(self) -> int:
        """Returns the number of tasks."""
        return len(self._tasks)
