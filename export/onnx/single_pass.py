"""Loaded .onnx files of models that answer in one pass."""

from typing import Any

import numpy as np

from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.export.open_file import OpenFile
from keras_transformer.export.single_pass import OpenPass, check_inputs, count_rows
from keras_transformer.tasks.answering import PassAnswering


class OnnxSinglePass(OpenFile, OpenPass):
    """A loaded .onnx file of a model that answers in one pass.

    Any number of threads may share it.

    Args:
        model: The `OnnxModel`.

    Raises:
        ValueError: If the file holds another kind of model or is damaged.
    """

    answers = PassAnswering

    def __init__(self, model: OnnxModel):
        self.path, self.metadata, self.tokenizers = model.path, model.metadata, model.tokenizers
        self.take_task()
        self.search: Any = None
        self._model = model
        self.read_codec(self.codec_class, self.metadata)

    def run(self, **inputs: Any) -> dict[str, np.ndarray]:
        """Runs the model on its inputs.

        Args:
            **inputs: Arrays `[R, ...]`, with R at least 1, by their names in the file.

        Returns:
            Dictionary of the outputs, arrays `[R, ...]`.

        Raises:
            ValueError: If inputs of one of `Codec.further_signatures` have another shape or dtype.
        """
        arrays = {name: np.asarray(value) for name, value in inputs.items()}
        for signature in self.codec.further_signatures:
            specs = self.codec.further_specs(signature)
            own = [array for name, array in arrays.items() if name not in specs]
            check_inputs(self.path, specs, arrays, count_rows([*own, *arrays.values()][0]))
        return self._model.run(**arrays)

    def run_further(self, signature: str, /, **inputs: Any) -> dict[str, np.ndarray]:
        """Returns the outputs for inputs that the graph takes in place of its usual ones."""
        arrays = self.further_inputs(signature, inputs)
        count = len(next(iter(arrays.values())))
        return self.run(**self.codec.unread(count), **arrays)
