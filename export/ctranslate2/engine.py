"""The package `ctranslate2`, which only this module imports."""

from typing import Any

from keras_transformer.export.runtime import reason
from keras_transformer.installation import install_hint


def load_ctranslate2() -> Any:
    """Returns the package `ctranslate2`.

    Raises:
        ValueError: If it is not installed; the message says how to install it.
    """
    try:
        import ctranslate2
    except ImportError as error:
        raise ValueError(
            "CTranslate2 models need the package ctranslate2. Install it with: "
            + install_hint("ctranslate2")
        ) from error
    return ctranslate2


def open_engine(name, path, num_threads, compute_type, num_parallel_calls) -> Any:
    """Returns CTranslate2's model of a folder.

    Args:
        name: Name of the class of `ctranslate2` that runs the model, such as `"Translator"`.
        path: The folder.
        num_threads, compute_type, num_parallel_calls: See `CTranslate2Generator`.

    Raises:
        ValueError: If ctranslate2 is missing, or cannot read the folder.
    """
    engine = getattr(load_ctranslate2(), name)
    try:
        return engine(
            str(path),
            intra_threads=num_threads or 0,
            inter_threads=num_parallel_calls,
            compute_type=compute_type,
        )
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"{path} cannot be read by CTranslate2: {reason(error)}") from error
