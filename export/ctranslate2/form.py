"""A folder for CTranslate2 as a form that `keras_transformer.open` opens."""

import pathlib
from typing import Any

from keras_transformer.opening.forms import Form
from keras_transformer.tasks.answering import Answering


class CTranslate2Form(Form):
    """A folder for CTranslate2."""

    name, title = "ctranslate2", "a folder for CTranslate2"
    arguments = ("num_threads", "num_parallel_calls", "compute_type")

    @classmethod
    def fits(cls, path: pathlib.Path) -> bool:  # noqa: D102
        return (path / "model.bin").is_file()

    @classmethod
    def open(cls, path: Any, **arguments: Any) -> Answering:  # noqa: D102
        from keras_transformer.export.ctranslate2.opened import open_ctranslate2

        return open_ctranslate2(path, **arguments)
