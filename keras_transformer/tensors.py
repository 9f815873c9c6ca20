"""The type of tensors in signatures."""

from typing import Any, TypeAlias

# A tensor or variable of the backend, a NumPy array, or a `keras.KerasTensor` while a functional
# model is built. Docstrings state shape and dtype.
Tensor: TypeAlias = Any
