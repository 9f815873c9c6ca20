"""Loaded .onnx files of models that generate text, from strings to strings."""

import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.decoding import Beam, Sample
from keras_transformer.decoding.hypotheses import NONE
from keras_transformer.export import child_process
from keras_transformer.export.apart import EngineApart
from keras_transformer.export.onnx import strings_apart
from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.export.onnx.packages import DOMAIN, require_extensions
from keras_transformer.export.onnx.packed import unpack
from keras_transformer.export.onnx.runtime import OnnxTranslator
from keras_transformer.export.onnx.sampling import values_of
from keras_transformer.export.onnx.string_graph import (
    SCORE,
    TEXT,
    TRUNCATED,
    beam_values,
    check_ratio,
)
from keras_transformer.export.runtime import Decoded, Pool, check_threads
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tasks.results import COMPLETE
from keras_transformer.tasks.strings import check_sentences, is_valid


class StringModel:
    """A model in an .onnx file with strings, run in a process of its own.

    TensorFlow Text, which this process has loaded, and onnxruntime-extensions cannot be used in one
    process: it crashed. Any number of threads may share the object; they take turns.

    Args:
        path, num_threads: See `OnnxModel`.

    Raises:
        ExportError: If the process could not start.
        ValueError: See `OnnxModel`; also raised if onnxruntime-extensions is missing, or this
            program can start no other Python.

    Attributes:
        path, metadata, tokenizers, inputs, outputs: See `OnnxModel`.
    """

    def __init__(self, path: str | os.PathLike, num_threads: int | None = None):
        num_threads = 1 if num_threads is None else num_threads
        check_threads(num_threads=num_threads)
        require_extensions()
        self.path = pathlib.Path(path)
        if not child_process.available():
            raise ValueError(
                f"{path} takes strings. Such files run in a process without TensorFlow, but this "
                "program cannot start a Python for it. Export without --tokenizer."
            )
        arguments = strings_apart.__name__, os.fspath(path), str(num_threads)
        self._engines = Pool([EngineApart(*arguments, restarts=True)])
        contents = self._run(strings_apart.CONTENTS)
        self.inputs, self.outputs, names, properties = (
            [text.decode() for text in contents[name]]
            for name in (
                *(strings_apart.INPUTS, strings_apart.OUTPUTS),
                *(strings_apart.NAMES, strings_apart.PROPERTIES),
            )
        )
        self.metadata, self.tokenizers = unpack(
            self.path, dict(zip(names, properties, strict=True))
        )

    def run(self, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the outputs of the model by name; strings are bytes.

        Args:
            **inputs: Arrays by the names of the inputs, with at least one row. Strings are in UTF-8
                if they are bytes.
        """
        return self._run(strings_apart.ANSWER, **inputs)

    def _run(self, name, **inputs):
        with self._engines.borrow() as engine:
            return engine.run(name, **inputs)


class OnnxStringTranslator(OnnxTranslator):
    """A loaded .onnx file that `export_onnx` has written with `tokenizer=True`.

    Args:
        model: The `StringModel`.

    Raises:
        ValueError: See `OnnxTranslator`.
    """

    def find(
        self, sources: list[list[int]], n: int = 1, numbers: Sequence[int] | None = None
    ) -> Decoded:
        """Raises a `ValueError`: the file takes strings."""
        raise ValueError(f"{self.path} takes strings and no token ids. Export without --tokenizer.")

    def _generate(self, sentences, n=1, numbers=None, **options):
        """Returns the outputs of the graph for strings, which may be bytes that are not UTF-8."""
        sentences = [*map(_as_bytes, check_sentences(sentences))]
        valid = np.array([*map(is_valid, sentences)], bool)  # [B]
        limit = self.tokenizers.source.bytes_per_token * self.max_length  # as in `encode`
        texts = [text[:limit].decode("utf-8", "ignore") for text in sentences]
        shape = len(texts), self._n_best
        outputs: Any = {self.output: [], SCORE: [], COMPLETE: [], TRUNCATED: []}
        if texts:
            rows = [text if right else "" for text, right in zip(texts, valid, strict=True)]
            inputs = {TEXT: np.array(rows, object)}
            if isinstance(self.search, Beam):
                check_ratio(self.search)
                inputs |= beam_values(self.search)
            elif isinstance(self.search, Sample):
                inputs |= values_of(self.search, range(len(texts)) if numbers is None else numbers)
            outputs = self._model.run(**inputs)
        longer = np.array([len(text) > limit for text in sentences], bool) & valid
        score = np.where(valid[:, None], np.reshape(outputs[SCORE], shape), np.float32(NONE))
        return {
            TEXT: tf.constant(np.reshape(outputs[self.output], shape), tf.string),
            SCORE: tf.constant(score, tf.float32),
            TRUNCATED: tf.constant(np.asarray(outputs[TRUNCATED], bool) | longer),
            COMPLETE: tf.constant(np.reshape(np.asarray(outputs[COMPLETE], bool), shape)),
        }


def open_model(path: str | os.PathLike, num_threads: int | None = None) -> OnnxModel | StringModel:
    """Opens an .onnx file, in a process of its own if it takes strings.

    Args:
        path, num_threads: See `OnnxModel`.

    Raises:
        ExportError, ValueError: See `OnnxModel` and `StringModel`.
    """
    try:
        return OnnxModel(path, num_threads)
    except ValueError as error:
        if f"{DOMAIN}:" not in str(error):  # of an operator that ONNX Runtime does not have
            raise
    return StringModel(path, num_threads)


def _as_bytes(text):
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
