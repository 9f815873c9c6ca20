"""The types of tensors and shapes in signatures."""

from typing import Any, TypeAlias

# A tensor or variable of the backend, a NumPy array, or a `keras.KerasTensor` while a functional
# model is built. Docstrings state shape and dtype.
Tensor: TypeAlias = Any

# Sizes of the axes of a tensor; `None` for those that are only known when the model runs.
Shape: TypeAlias = tuple[int | None, ...]
