"""Keras and NumPy, imported when they are first used.

Values of a configuration compute with them, but reading a configuration must not take the seconds
that importing Keras takes.
"""

from typing import TYPE_CHECKING

from keras_transformer.lazy import LazyModule

if TYPE_CHECKING:
    import keras
    import numpy as np
    from keras import ops
else:
    keras, ops, np = LazyModule("keras"), LazyModule("keras.ops"), LazyModule("numpy")

__all__ = ["keras", "np", "ops"]
