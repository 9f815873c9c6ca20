"""Functions with a gradient of their own, on every backend of Keras."""

import functools
from collections.abc import Callable
from typing import Any

from keras import ops


def custom_gradient(function: Callable) -> Callable:
    """Decorates a function that returns its value and a function of the upstream gradient.

    Like `keras.ops.custom_gradient`, which on PyTorch calls the gradient with the arguments of the
    function as well, and with the upstream gradient by name.

    Args:
        function: Function of tensors.
    """

    @ops.custom_gradient
    @functools.wraps(function)
    def decorated(*tensors) -> Any:
        value, gradient = function(*tensors)

        def of_upstream(*arguments, upstream=None):
            return gradient(arguments[0] if upstream is None else upstream)

        return value, of_upstream

    return decorated
