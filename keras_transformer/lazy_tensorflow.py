"""TensorFlow and TensorFlow Text, imported when they are first used.

An opened export needs TensorFlow only for what its own runtime and plain Python cannot do.
Importing it takes seconds and hundreds of megabytes.
"""

import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from keras_transformer.lazy import LazyModule

if TYPE_CHECKING:
    import tensorflow as tf
    import tensorflow_text
else:
    tf, tensorflow_text = LazyModule("tensorflow"), LazyModule("tensorflow_text")

__all__ = [
    "GraphMethod",
    "LateAttribute",
    "graph_method",
    "register_text_operations",
    "tensorflow_text",
    "tf",
]


def register_text_operations() -> None:
    """Registers the operations of TensorFlow Text, which a SavedModel with a tokenizer needs."""
    importlib.import_module("tensorflow_text")


class GraphMethod:
    """A method that is a `tf.function`, which is made when the method is first used.

    Args:
        function: The method.
        specs: Function that returns the list of the `tf.TensorSpec`s of its arguments.
    """

    def __init__(self, function: Callable, specs: Callable[[], list]):
        self._function, self._specs = function, specs

    @functools.cached_property
    def _graph(self):
        return tf.function(self._function, input_signature=self._specs(), autograph=False)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self._graph.__get__(instance, owner)


def graph_method(specs: Callable[[], list]) -> Callable[[Callable], Any]:
    """Returns a decorator of methods that become a `GraphMethod`.

    Args:
        specs: See `GraphMethod`.
    """
    return functools.partial(GraphMethod, specs=specs)


class LateAttribute:
    """An attribute of a class and its objects that is computed whenever it is read.

    Args:
        value: Function that returns the value.
    """

    def __init__(self, value: Callable[[], Any]):
        self._value = value

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self._value()
