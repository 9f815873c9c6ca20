"""A .tflite file as a form that `keras_transformer.open` opens."""

import pathlib
from typing import Any

from keras_transformer.export.place_checks import is_tflite
from keras_transformer.opening.forms import Form
from keras_transformer.tasks.answering import Answering


class LiteRTForm(Form):
    """A .tflite file."""

    name, title = "litert", "a .tflite file"
    arguments = ("num_threads", "num_parallel_calls")

    @classmethod
    def fits(cls, path: pathlib.Path) -> bool:
        """Returns whether a path is such a file, by its suffix or by its first bytes."""
        return path.is_file() and (path.suffix == ".tflite" or is_tflite(path))

    @classmethod
    def open(cls, path: Any, **arguments: Any) -> Answering:  # noqa: D102
        from keras_transformer.export.litert.packed import unpack
        from keras_transformer.export.litert.runtime import LiteRTTranslator
        from keras_transformer.export.litert.single_pass import LiteRTSinglePass
        from keras_transformer.export.metadata import STREAMING
        from keras_transformer.tasks import TASKS

        metadata, *_ = unpack(pathlib.Path(path))
        if STREAMING in metadata:
            from keras_transformer.export.litert.streamed import LiteRTStreamer

            return LiteRTStreamer(path, **arguments)
        generates = TASKS[metadata["task"]].answering_class().generates
        return (LiteRTTranslator if generates else LiteRTSinglePass)(path, **arguments)
