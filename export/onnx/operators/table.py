"""Table of the operators of TensorFlow that can be written to an ONNX graph."""

from collections.abc import Callable

OPERATORS: dict[str, Callable] = {}


def operator(*kinds: str) -> Callable:
    """Returns a decorator that enters a function as the conversion of operators of TensorFlow."""

    def enter(function):
        OPERATORS.update(dict.fromkeys(kinds, function))
        return function

    return enter
