"""Constant arrays that all graphs share, so that each is stored once."""

import hashlib
import weakref
from typing import Any

import keras
import numpy as np

# From a digest to the tensor, as long as a graph uses it.
KNOWN = weakref.WeakValueDictionary()


def shared(array: np.ndarray) -> Any:
    """Returns a constant array for the use in a graph.

    A constant that is created in a graph is stored there, once for every block and for every loop.
    With TensorFlow, this tensor is created outside of all graphs: they refer to it, and a
    SavedModel stores it once. Equal arrays share a tensor.

    Args:
        array: A constant NumPy array.

    Returns:
        The array itself with other backends, and outside of graphs.
    """
    if keras.backend.backend() != "tensorflow":
        return array
    import tensorflow as tf  # not needed by other backends

    if tf.executing_eagerly():
        return array
    array = np.ascontiguousarray(array)
    key = array.shape, array.dtype.str, hashlib.sha256(array.tobytes()).digest()
    tensor = KNOWN.get(key)
    if tensor is None:
        with tf.init_scope():
            if not tf.executing_eagerly():  # in a graph of TensorFlow 1
                return array
            tensor = KNOWN[key] = tf.constant(array)
    return tensor
