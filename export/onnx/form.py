"""An .onnx file as a form that `keras_transformer.open` opens."""

import pathlib
from typing import Any

from keras_transformer.opening.forms import Form
from keras_transformer.tasks.answering import Answering

SUFFIX = ".onnx"


class OnnxForm(Form):
    """An .onnx file."""

    name, title = "onnx", "an .onnx file"
    arguments = ("num_threads",)

    @classmethod
    def fits(cls, path: pathlib.Path) -> bool:  # noqa: D102
        return path.suffix == SUFFIX and path.is_file()

    @classmethod
    def open(cls, path: Any, **arguments: Any) -> Answering:  # noqa: D102
        from keras_transformer.export.metadata import STREAMING
        from keras_transformer.export.onnx.runtime import OnnxTranslator
        from keras_transformer.export.onnx.single_pass import OnnxSinglePass
        from keras_transformer.export.onnx.strings_runtime import (
            OnnxStringTranslator,
            StringModel,
            open_model,
        )
        from keras_transformer.tasks import TASKS

        model = open_model(path, **arguments)
        if isinstance(model, StringModel):
            return OnnxStringTranslator(model)
        if STREAMING in model.metadata:
            from keras_transformer.export.onnx.streamed import OnnxStreamer

            return OnnxStreamer(model)
        generates = TASKS[model.metadata["task"]].answering_class().generates
        return (OnnxTranslator if generates else OnnxSinglePass)(model)
