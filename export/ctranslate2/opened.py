"""A folder for CTranslate2, opened as the class that fits its model."""

import os
import pathlib
from typing import Any

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.export.ctranslate2.folder import CONFIG, VOCABULARY
from keras_transformer.export.ctranslate2.metadata import task_of
from keras_transformer.export.ctranslate2.translator import (
    CTranslate2TextGenerator,
    CTranslate2Translator,
)


def open_ctranslate2(
    path: str | os.PathLike,
    search: Greedy | Beam | None = None,
    num_threads: int | None = None,
    compute_type: str = "default",
    num_parallel_calls: int = 1,
) -> Any:
    """Opens a folder that `export_ctranslate2` has written.

    Args:
        path: The folder.
        search: See `CTranslate2Translator`; only for a model that generates text. `None`: greedy
            search.
        num_threads, compute_type, num_parallel_calls: See `CTranslate2Translator`.

    Returns:
        A `CTranslate2Translator` or a `CTranslate2TextGenerator`; for an encoder the pipeline of
        its task, such as an `Embedder` or a `TextClassificationPipeline`, whose encoder runs in
        CTranslate2.

    Raises:
        TypeError: If `search` is neither a `Greedy` nor a `Beam`.
        ValueError: If ctranslate2 is missing, the folder was not written by `export_ctranslate2`,
            CTranslate2 does not support the search, or an argument has no effect or is out of
            range.
    """
    options = num_threads, compute_type, num_parallel_calls
    task = task_of(pathlib.Path(path, CONFIG))
    if task is None:
        alone = pathlib.Path(path, VOCABULARY).is_file()
        kind = CTranslate2TextGenerator if alone else CTranslate2Translator
        return kind(path, Greedy() if search is None else search, *options)
    if search is not None:
        raise ValueError(
            f"`search` has no effect on {path}, a model for {task}. Received: search={search!r}."
        )
    from keras_transformer.export.ctranslate2.encoder import open_encoder  # imports Keras

    return open_encoder(path, *options)
