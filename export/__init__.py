"""Trained models in forms that need none of this package to run."""

from keras_transformer.export.ctranslate2 import export_ctranslate2
from keras_transformer.export.ctranslate2_loaded import CTranslate2Translator
from keras_transformer.export.litert import export_litert
from keras_transformer.export.loaded import LiteRTTranslator
from keras_transformer.export.parity import ExportError
from keras_transformer.export.saved_model import export_saved_model
from keras_transformer.export.saved_model_loaded import SavedModelTranslator
from keras_transformer.export.strings_loaded import LiteRTStringTranslator

__all__ = [
    "CTranslate2Translator",
    "ExportError",
    "LiteRTStringTranslator",
    "LiteRTTranslator",
    "SavedModelTranslator",
    "export_ctranslate2",
    "export_litert",
    "export_saved_model",
]
