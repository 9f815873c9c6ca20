"""A SavedModel in Triton's Python backend: texts in, translations out, by TensorFlow.

The file belongs to `repository/translator/1/`, with the SavedModel as `model.savedmodel`.
"""

import json
import pathlib

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the operations of the tokenizer)
import triton_python_backend_utils as triton


class TritonPythonModel:
    """The model of a version. The requests of a call are one batch."""

    def initialize(self, args):
        """Loads the SavedModel."""
        folder = pathlib.Path(args["model_repository"]) / args["model_version"]
        self._model = tf.saved_model.load(str(folder / "model.savedmodel"))
        self._translate = self._model.signatures["serving_default"]
        self._names = [one["name"] for one in json.loads(args["model_config"])["output"]]

    def execute(self, requests):
        """Returns the response to each request."""
        inputs = [triton.get_input_tensor_by_name(one, "sentences") for one in requests]
        texts = [one.as_numpy().reshape(-1) for one in inputs]
        ends = np.cumsum([len(one) for one in texts])[:-1]
        outputs = self._translate(sentences=tf.constant(np.concatenate(texts), tf.string))
        parts = [np.split(outputs[name].numpy(), ends) for name in self._names]
        return [
            triton.InferenceResponse(
                [triton.Tensor(*pair) for pair in zip(self._names, row, strict=True)]
            )
            for row in zip(*parts, strict=True)
        ]
