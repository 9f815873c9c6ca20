"""A .tflite file as a form that `keras_transformer.open` opens."""

import pathlib
from typing import Any

from keras_transformer.checkpoint_hints import hint
from keras_transformer.opening.forms import Form, model_kinds
from keras_transformer.tasks.answering import Answering


class LiteRTForm(Form):
    """A .tflite file."""

    name, title = "litert", "a .tflite file"
    arguments = ("num_threads", "num_parallel_calls")

    @classmethod
    def fits(cls, path: pathlib.Path) -> bool:
        """Returns whether a path is a file: no other form is one."""
        return path.is_file()

    @classmethod
    def open(cls, path: Any, **arguments: Any) -> Answering:  # noqa: D102
        path = pathlib.Path(path)
        _check_file(path)
        from keras_transformer.export.litert.packed import unpack
        from keras_transformer.export.litert.runtime import LiteRTTranslator
        from keras_transformer.export.litert.single_pass import LiteRTSinglePass
        from keras_transformer.tasks import TASKS

        metadata, *_ = unpack(path)
        generates = TASKS[metadata["task"]].pipeline_class().generates
        return (LiteRTTranslator if generates else LiteRTSinglePass)(path, **arguments)


def _check_file(path):
    """Refuses a file that is not a .tflite file, and names the path to use instead."""
    if path.suffix == ".keras":
        raise ValueError(
            f"{path} holds only the weights of a run: name the run's folder, "
            f"{path.resolve().parent}."
        )
    if path.suffix in (".h5", ".hdf5"):
        raise ValueError(
            f"{path} is in Keras's older format, HDF5, which holds no vocabulary and no search. "
            f"MODEL is {model_kinds()}."
        )
    with open(path, "rb") as file:
        beginning = file.read(8)
    if path.suffix != ".tflite" and beginning[4:] != b"TFL3":
        raise ValueError(f"{path} is not a model: MODEL is {model_kinds()}.{hint(path)}")
