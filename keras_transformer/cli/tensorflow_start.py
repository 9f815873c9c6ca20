"""The start of TensorFlow: its log is filtered, and its import is made as short as possible."""

import contextlib
import functools
import gc
import importlib
import importlib.abc
import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Generator
from typing import Any

from keras_transformer.native_code import end_silently, filtered_log

NAME = "tensorflow"
# Warnings of other packages about each other, which would end a command with Python's `-W error`:
# NumPy 2 about arrays that Keras makes of its variables; Python 3.12 about TensorFlow's AutoGraph.
WARNINGS = ("__array__ implementation doesn't", r"ast\.\w+ is deprecated")
# A line of TensorFlow's C++ log and its severity; older releases write the date first.
LOGGED = re.compile(rb"(?:[0-9]{4}-[0-9-]+ [0-9:.]+: )?([IWEF])(?:[0-9]{4} [0-9:.]+| )")


def start_tensorflow() -> None:
    """Imports TensorFlow and filters its log on stderr, part of which ignores the log level.

    `TF_CPP_MIN_LOG_LEVEL` chooses the lines to show: 3, the default, no errors or warnings; 2
    errors; 1 also warnings; 0 everything, unfiltered. If the import fails, all lines are shown.
    """
    level = _prepared()
    if level > 0:
        with filtered_log(functools.partial(lines_of_level, level=level)), importing_quickly():
            importlib.import_module("keras_transformer.models.transformer")  # registers the layers
            importlib.import_module(NAME).config.list_physical_devices()


def start_tensorflow_later() -> None:
    """Lets the first import of TensorFlow, if there is one, do what `start_tensorflow` does."""
    level = _prepared()
    if level > 0 and NAME not in sys.modules:
        sys.meta_path.insert(0, _Finder(level))


def _prepared():
    """Sets what must be set before TensorFlow is imported; returns the level of its log."""
    os.environ["KERAS_BACKEND"] = NAME
    for text in WARNINGS:
        warnings.filterwarnings("ignore", text, DeprecationWarning)
    # Errors that matter are also raised as exceptions.
    level = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    level = int(level) if re.fullmatch("[0-9]+", level) else 0  # as TensorFlow reads it
    if level > 0:
        end_silently()
    return level


class _Finder(importlib.abc.MetaPathFinder):
    """Finds TensorFlow once, with a loader that filters its log.

    Args:
        level: See `lines_of_level`.
    """

    def __init__(self, level):
        self._level = level

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:  # noqa: D102
        if fullname != NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(NAME)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._level)
        return spec


class _Loader(importlib.abc.Loader):
    """The loader of TensorFlow with a filtered log.

    Args:
        loader: Its own loader.
        level: See `lines_of_level`.
    """

    def __init__(self, loader, level):
        self._loader, self._level = loader, level

    def create_module(self, spec: Any) -> Any:  # noqa: D102
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:  # noqa: D102
        shown = functools.partial(lines_of_level, level=self._level)
        with filtered_log(shown), _without_search():
            module.__spec__.loader = module.__loader__ = self._loader
            self._loader.exec_module(module)
            module.config.list_physical_devices()


@contextlib.contextmanager
def importing_quickly() -> Generator[None]:
    """Leaves modules that the block imports out of the search for garbage, now and later.

    The search takes a fifth of the time of importing TensorFlow and finds 2 MB of garbage. Among
    the imported objects, each later one would take 0.2 seconds.
    """
    if NAME in sys.modules or not gc.isenabled():
        yield
        return
    with _without_search():
        yield


@contextlib.contextmanager
def _without_search():
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def lines_of_level(log, level) -> bytes:
    """Returns the lines of TensorFlow's C++ log that have at least the given level.

    Args:
        log: The log, bytes.
        level: Lowest level to show: 1 for warnings, 2 for errors, 3 for fatal errors.
    """
    return b"".join(
        line
        for line in log.splitlines(keepends=True)
        if (begin := LOGGED.match(line)) and b"IWEF".index(begin[1]) >= level
    )
