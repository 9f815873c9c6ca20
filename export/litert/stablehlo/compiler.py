"""The compiler of LiteRT's package `litert-converter`, a build of MLIR."""

import typing
from typing import Any

from keras_transformer.installation import install_hint


class Compiler(typing.NamedTuple):
    """Its modules.

    Attributes:
        ir, passes: MLIR's own modules for programs and for pipelines of passes.
        litert: LiteRT's passes and the writer of `.tflite` models.
    """

    ir: Any
    passes: Any
    litert: Any


def load_compiler() -> Compiler:
    """Returns the compiler.

    Raises:
        ValueError: If litert-converter is not installed; the message says how to install it.
    """
    try:
        from litert_converter.mlir import ir, passmanager
        from litert_converter.mlir._mlir_libs import (
            converter_api_ext,  # ty: ignore[import-not-found]
        )
    except ImportError as error:
        raise ValueError(
            'The converter "litert" needs the package litert-converter, which exists for Linux on '
            f"x86-64 and macOS on ARM. Install it with: {install_hint('converter')}"
        ) from error
    return Compiler(ir, passmanager, converter_api_ext)
