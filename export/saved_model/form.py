"""A SavedModel as a form that `keras_transformer.open` opens."""

import pathlib
from typing import Any

from keras_transformer.opening.forms import Form
from keras_transformer.tasks.answering import Answering


class SavedModelForm(Form):
    """A SavedModel, or a folder with versions of one."""

    name, title = "saved-model", "a SavedModel"
    attends = True

    @classmethod
    def fits(cls, path: pathlib.Path) -> bool:  # noqa: D102
        return any(path.glob("saved_model.pb")) or any(path.glob("*/saved_model.pb"))

    @classmethod
    def open(cls, path: Any, **arguments: Any) -> Answering:  # noqa: D102
        from keras_transformer.export.saved_model import runtime, stored, versions

        kind = versions.pipeline_class_of(path)
        if kind is None or kind.generates:
            return runtime.SavedModelTranslator(path)
        if stored.stores_codec(path):
            return stored.SavedModelPass(path)
        return runtime.SavedModelSinglePass(path)
