"""Loaders of SavedModels: as TensorFlow Serving loads them, and as Python does."""

import contextlib
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.export.errors import ExportError
from keras_transformer.lazy_tensorflow import register_text_operations

# Operations of TensorFlow Text, all of which TensorFlow Serving links.
TOKENIZERS = {
    *("SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"),
    *("FastWordpieceTokenizeWithOffsets", "NormalizeUTF8", "RegexSplitWithOffsets"),
}


class SessionModel(contextlib.AbstractContextManager):
    """A SavedModel loaded as TensorFlow Serving loads it: from the graph alone.

    Python's loader restores Python objects as well, which can hide that the graph is incomplete.

    Args:
        path: Folder of the SavedModel.

    Raises:
        ExportError: If it contains operations that TensorFlow Serving does not have.
    """

    def __init__(self, path):
        register_text_operations()
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        logger = tf.get_logger()
        level = logger.level
        logger.setLevel("ERROR")  # suppresses the advice to use the other loader
        try:
            with self._session.graph.as_default():
                meta = tf.compat.v1.saved_model.loader.load(self._session, ["serve"], str(path))
        finally:
            logger.setLevel(level)
        check_operations(meta.graph_def)
        self._signatures = meta.signature_def

    @property
    def signatures(self) -> list[str]:
        """Names of the signatures."""
        return [*self._signatures]

    def run(self, signature, **inputs) -> dict[str, Any]:
        """Returns the outputs of a signature as arrays, by name."""
        known = self._signatures[signature]
        outputs = {name: info.name for name, info in known.outputs.items()}
        feed = {known.inputs[name].name: np.asarray(value) for name, value in inputs.items()}
        return self._session.run(outputs, feed)

    def __exit__(self, *error) -> None:
        self._session.close()


class PythonModel(contextlib.AbstractContextManager):
    """A SavedModel loaded as a Python program loads it."""

    def __init__(self, path):
        register_text_operations()
        self._model = tf.saved_model.load(str(path))

    @property
    def signatures(self) -> list[str]:
        """Names of the signatures."""
        return [*self._model.signatures]

    def run(self, signature, **inputs) -> dict[str, Any]:
        """Returns the outputs of a signature as tensors, by name."""
        inputs = {name: tf.convert_to_tensor(value) for name, value in inputs.items()}
        return self._model.signatures[signature](**inputs)

    def __exit__(self, *error) -> None:
        pass


SERVING = "TensorFlow Serving"
# Loaders with the names of the programs that load in this way.
LOADERS = ((SessionModel, SERVING), (PythonModel, "Python"))


def check_operations(graph) -> None:
    """Raises an `ExportError` if a graph has operations that TensorFlow Serving does not have."""
    functions = graph.library.function
    nodes = [*graph.node, *(node for function in functions for node in function.node_def)]
    names = {node.op for node in nodes} - {function.signature.name for function in functions}
    foreign = sorted(
        name
        for name in names - TOKENIZERS
        if not hasattr(tf.raw_ops, name) or name.startswith("Xla")
    )
    if foreign:
        raise ExportError(f"TensorFlow Serving does not have the operations {', '.join(foreign)}.")
