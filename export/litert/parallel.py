"""Engines of a .tflite file whose calls run at the same time.

The package of LiteRT holds Python's lock while a compiled model runs. Only one call can run in a
process, and no other Python code. Several engines of a compiled model therefore run in processes of
their own. LiteRT's interpreter releases the lock. A program that contains Python, such as a frozen
one, cannot start such processes: there the calls wait for one another.
"""

import os
import sys
from typing import Any

from keras_transformer.export import child_process
from keras_transformer.export.apart import EngineApart, serve
from keras_transformer.export.litert.engines import (
    COMPILED,
    CompiledEngine,
    PackedWeights,
    open_engine,
)


def open_engines(
    path: str | os.PathLike, how: str, num_threads: int = 1, count: int = 1
) -> list[Any]:
    """Returns a list of engines of a file, which different threads may run at the same time.

    Args:
        path: The file.
        how, num_threads: See `open_engine`.
        count: Number of engines. On Linux, those of a large file share the packed weights.

    Raises:
        ExportError: If a process could not start. The engines raise it as well, if their process
            ended too early.
        ValueError, RuntimeError: See `open_engine`.
    """
    if how != COMPILED or count == 1 or not child_process.available():
        return [open_engine(path, how, num_threads) for _ in range(count)]
    weights = PackedWeights(path)
    weights.hold()  # all processes, also those that start later, read the same file
    arguments = weights.path, weights.cache, str(num_threads)
    return [
        EngineApart(__name__, *arguments, inherited=weights, restarts=True) for _ in range(count)
    ]


def main(path: str, cache: str, num_threads: str) -> None:
    """Runs an engine for `open_engines`."""
    weights = PackedWeights(path, cache)
    # The thread that opens a file may end long before the file is used for the last time.
    serve(lambda: CompiledEngine(path, int(num_threads), weights), with_thread=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
