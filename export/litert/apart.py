"""LiteRT's engines in processes of their own, in which there is no model.

There is no TensorFlow either, unless the file takes strings.
"""

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

from keras_transformer.export.apart import EngineApart, is_large, serve
from keras_transformer.export.litert.engines import open_engine
from keras_transformer.export.litert.parallel import open_engines


class EnginesApart(contextlib.AbstractContextManager):
    """Opens each engine in a process of its own; the processes end with the block."""

    def __init__(self):
        self._stack = contextlib.ExitStack()

    def __call__(
        self, path: str | os.PathLike, how: str, num_threads: int = 1, count: int = 1
    ) -> list[EngineApart]:
        """Returns engines as `open_engines` does.

        Raises:
            ExportError, RuntimeError, ValueError: See `EngineApart` and `open_engines`.
        """
        arguments = os.fspath(path), how, str(num_threads)
        engines = (EngineApart(__name__, *arguments) for _ in range(count))
        return [self._stack.enter_context(engine) for engine in engines]

    def __exit__(self, *error) -> None:
        self._stack.close()


def engines_for(model: Any) -> contextlib.AbstractContextManager[Callable[..., list]]:
    """Returns a context with the function that opens the engines for a check of an export.

    It is `open_engines`, or an `EnginesApart` if the exported model is large.
    """
    return EnginesApart() if is_large(model) else contextlib.nullcontext(open_engines)


def main(path: str, how: str, num_threads: str) -> None:
    """Runs an engine for `EnginesApart`."""
    serve(lambda: open_engine(path, how, int(num_threads)))


if __name__ == "__main__":
    main(*sys.argv[1:])
