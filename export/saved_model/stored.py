"""Loaded SavedModels that store their codec."""

import os
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.export.runtime import refusals
from keras_transformer.export.saved_model.metadata import CODEC, read_stored_codec
from keras_transformer.export.saved_model.versions import newest_version, open_version
from keras_transformer.export.single_pass import OpenPass
from keras_transformer.tasks.single_pass.pipeline import SinglePass
from keras_transformer.tasks.single_pass.result import Result


def stores_codec(path: str | os.PathLike) -> bool:
    """Returns whether a SavedModel, or the newest of several versions, stores its codec."""
    return (newest_version(path) / CODEC).exists()


class SavedModelPass(OpenPass):
    """A loaded SavedModel that stores its codec, and is called with the inputs of the model.

    Args:
        path: See `SavedModelSinglePass`.

    Raises:
        ValueError: See `SavedModelSinglePass`.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = newest_version(path)
        self._model, _, kind = open_version(self.path, SinglePass)
        self.task, self.codec = kind.task, read_stored_codec(self.path, kind.codec_class)
        self.tokenizers, self.max_length = self.codec.tokenizers, self.codec.max_length

    def answer_batch(self, examples: list, **how: Any) -> list[Result]:
        """Returns a `Result` for each of a list of examples, computed as few batches as possible.

        Raises:
            ValueError: If the model refuses an example, such as a recording without a frame.
        """
        examples, answer = self.codec.check(examples), super().answer_batch
        size = self.codec.most or max(1, len(examples))
        batches = (examples[begin : begin + size] for begin in range(0, len(examples), size))
        return [result for batch in batches for result in answer(batch, **how)]

    def run(self, **inputs: Any) -> dict[str, np.ndarray]:
        """Returns the numbers of the model for its inputs, both as arrays by name."""
        return self.run_further(self.codec.signature, **inputs)

    def run_further(self, signature: str, /, **inputs: Any) -> dict[str, np.ndarray]:  # noqa: D102
        if signature in self.codec.further_signatures:
            inputs = self.further_inputs(signature, inputs)
        given = {name: tf.convert_to_tensor(value) for name, value in inputs.items()}
        with refusals(self.path):
            outputs = self._model.signatures[signature](**given)
        return {name: value.numpy() for name, value in outputs.items()}
