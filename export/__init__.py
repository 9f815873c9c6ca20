"""Trained models in forms that need none of this package to run."""

import importlib

# Where each public name is defined. They are imported when they are needed: each format has
# requirements of its own.
_HOME = {
    "CTranslate2Translator": "ctranslate2.runtime",
    "ExportError": "errors",
    "LiteRTStringTranslator": "litert.strings_runtime",
    "LiteRTTranslator": "litert.runtime",
    "SavedModelTranslator": "saved_model.runtime",
    "export_ctranslate2": "ctranslate2.export",
    "export_litert": "litert.export",
    "export_marian": "marian.export",
    "export_saved_model": "saved_model.export",
}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__():
    return sorted({*globals(), *__all__})
