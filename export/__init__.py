"""Trained models in forms that need none of this package to run."""

from keras_transformer.export.litert import export_litert
from keras_transformer.export.loaded import LiteRTTranslator, SavedModelTranslator
from keras_transformer.export.parity import ExportError
from keras_transformer.export.saved_model import export_saved_model

__all__ = [
    "ExportError",
    "LiteRTTranslator",
    "SavedModelTranslator",
    "export_litert",
    "export_saved_model",
]
