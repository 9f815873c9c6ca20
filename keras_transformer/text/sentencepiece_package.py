"""The package sentencepiece, imported without the warnings of SWIG.

Python warns of every class that SWIG has made, also of one that is made when the process ends. If
warnings are errors, as with `-W error`, such a warning ends it with a segmentation fault.
"""

import warnings
from typing import Any

warnings.filterwarnings("ignore", "builtin type .* has no __module__", DeprecationWarning)

import sentencepiece as package  # noqa: E402
from sentencepiece import sentencepiece_model_pb2 as messages  # noqa: E402

# Made by generators, without types.
sentencepiece: Any = package
sentencepiece_model_pb2: Any = messages

__all__ = ["sentencepiece", "sentencepiece_model_pb2"]
