"""Trained models in forms that need none of this package to run."""

from keras_transformer.export.ctranslate2.export import export_ctranslate2
from keras_transformer.export.ctranslate2.runtime import CTranslate2Translator
from keras_transformer.export.litert.export import export_litert
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.litert.strings_runtime import LiteRTStringTranslator
from keras_transformer.export.marian.export import export_marian
from keras_transformer.export.parity import ExportError
from keras_transformer.export.saved_model.export import export_saved_model
from keras_transformer.export.saved_model.runtime import SavedModelTranslator

__all__ = [
    "CTranslate2Translator",
    "ExportError",
    "LiteRTStringTranslator",
    "LiteRTTranslator",
    "SavedModelTranslator",
    "export_ctranslate2",
    "export_litert",
    "export_marian",
    "export_saved_model",
]
