"""TensorFlow's operators in ONNX: to add one, write a function in a file of this folder.

Every file has functions from the `Graph`, the `tf.Operation` and its inputs, `Value`s, to its
outputs, a `Value` or a list. `@operator("Name")` enters them in the table.
"""

from keras_transformer.export.onnx.operators import (  # noqa: F401
    elementwise,
    lists,
    products,
    reductions,
    selections,
    shapes,
    unsigned,
)
from keras_transformer.export.onnx.operators.table import OPERATORS

__all__ = ["OPERATORS"]
