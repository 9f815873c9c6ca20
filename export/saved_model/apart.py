"""SavedModels loaded in processes of their own, in which there is no other model."""

import functools
import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_transformer.export.apart import EngineApart, is_large, serve
from keras_transformer.export.saved_model.loaders import LOADERS
from keras_transformer.free_memory import return_large_blocks

ERRORS = {"OpError": functools.partial(tf.errors.UnknownError, None, None)}


def loaders_for(model: Any) -> list[tuple[Callable, str]]:
    """Returns `LOADERS` for the check of an export of a model.

    If the model is large, each loads a SavedModel in a process of its own.
    """
    if not is_large(model):
        return list(LOADERS)
    return [(functools.partial(_load_apart, program), program) for _, program in LOADERS]


def _load_apart(program, path):
    return EngineApart(__name__, program, str(path), errors=ERRORS)


def main(program: str, path: str) -> None:
    """Loads a SavedModel for `loaders_for`, as a program does."""
    return_large_blocks()
    load = {name: load for load, name in LOADERS}[program]
    serve(lambda: load(path))


if __name__ == "__main__":
    main(*sys.argv[1:])
