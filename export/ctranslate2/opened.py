"""A folder for CTranslate2, opened as the class that fits its model."""

import os
import pathlib
from typing import Any

from keras_transformer.export.ctranslate2.folder import VOCABULARY
from keras_transformer.export.ctranslate2.generation import CTranslate2Generator
from keras_transformer.export.ctranslate2.text_generator import CTranslate2TextGenerator
from keras_transformer.export.ctranslate2.translator import CTranslate2Translator


def open_ctranslate2(path: str | os.PathLike, *args: Any, **kwargs: Any) -> CTranslate2Generator:
    """Returns the loaded model of a folder, of the class that fits the model.

    Args:
        path: The folder.
        *args: See `CTranslate2Generator`.
        **kwargs: See `CTranslate2Generator`.

    Raises:
        TypeError, ValueError: See `CTranslate2Generator`.
    """
    alone = (pathlib.Path(path) / VOCABULARY).is_file()
    return (CTranslate2TextGenerator if alone else CTranslate2Translator)(path, *args, **kwargs)
