"""Contents of an .onnx file: one graph for any number of rows of any length."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.export.contents import Contents
from keras_transformer.export.errors import ExportError
from keras_transformer.export.onnx.convert import convert_function
from keras_transformer.export.onnx.float16 import in_float16
from keras_transformer.export.onnx.int8 import in_int8
from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.export.onnx.packages import load_onnx
from keras_transformer.export.onnx.packed import FORMAT
from keras_transformer.export.onnx.stored_in_blocks import (
    in_int4,
    in_int4_with_offsets,
    in_int8_blocks,
)
from keras_transformer.export.runtime import reason

# Functions of a model, and of `is_weight`: see `in_int4`.
QUANTIZED = {"int8": in_int8, "int4": in_int4}
# Single scales for the activations of a batch cost SmolLM2 0.23 nats per token, and 4 bits without
# offsets, also for its table, 0.5.
OF_LANGUAGE_MODELS = {"int8": in_int8_blocks, "int4": in_int4_with_offsets}


class GraphContents(Contents):
    """Contents of an .onnx file; `convert` returns an `onnx.ModelProto`.

    A kind of model also defines `function`, `specs` and `opened`.

    Attributes:
        quantized: Functions that return a model with weights in fewer bits, by quantisation.
    """

    quantized = QUANTIZED

    def function(self) -> Callable[..., dict]:
        """Returns the function of the graph, from inputs by name to a dictionary of outputs."""
        raise NotImplementedError

    def specs(self) -> dict[str, tf.TensorSpec]:
        """Returns the `tf.TensorSpec`s of the inputs by name."""
        raise NotImplementedError

    def defaults(self) -> dict[str, np.ndarray]:
        """Returns the values of inputs that a call may leave out, by name."""
        return {}

    def opened(self, model) -> Any:
        """Returns an `OnnxModel` as the file that a user opens."""
        raise NotImplementedError

    def convert(self) -> Any:
        """Returns the `onnx.ModelProto`.

        Raises:
            ExportError: If the model needs operations that cannot be converted.
        """
        self.progress("converting")
        function = tf.function(self.function(), autograph=False)
        # `function` stays alive, and with it the variables that the concrete function reads.
        concrete = function.get_concrete_function(**self.specs())
        model = convert_function(concrete, self.defaults())
        if self.quantize == "float16":
            model = in_float16(model)
        elif self.quantize in self.quantized:
            model = self.quantized[self.quantize](model, weights_of(self.pipeline.model))
        try:
            load_onnx().checker.check_model(model, full_check=True)
        except Exception as error:  # its classes of errors have no common base
            raise ExportError(f"ONNX refuses the converted model: {reason(error)}") from error
        return model

    def finished(self, content) -> Any:
        """Returns the `onnx.ModelProto` of the file, made of the one that `check` has accepted."""
        return content

    def metadata(self, content) -> dict[str, Any]:  # noqa: D102
        versions = {one.domain: one.version for one in content.opset_import}
        opset = {"opset": versions.pop("")}
        others = {"other_operators": versions} if versions else {}
        return {"format": FORMAT, **super().metadata(content), **opset, **others}

    def open(self, draft) -> None:
        """Answers a sample with the finished file, as a user does."""
        self.opened(OnnxModel(draft)).answer_batch(self.samples[:1])


def weights_of(model: Any) -> Callable[[np.ndarray], bool]:
    """Returns a function that returns whether an array is one of the weights of a model.

    Args:
        model: A Keras model.
    """
    known = {_contents(weight.numpy()) for weight in model.weights if len(weight.shape) == 2}
    return lambda array: _contents(array) in known


def _contents(array):
    return array.shape, hashlib.sha256(np.ascontiguousarray(array, np.float32)).digest()
