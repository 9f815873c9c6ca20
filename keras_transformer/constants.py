"""Constant arrays that all graphs share, and results that all layers of a graph share."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable
from typing import Any

from keras_transformer.lazy_keras import keras, np

# From a digest to the tensor, as long as a graph uses it.
KNOWN = weakref.WeakValueDictionary()
RESULTS = "_keras_transformer_results"  # attribute of a graph


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


def once(key: tuple, tensor: Any, compute: Callable[[], Any]) -> Any:
    """Returns a result that follows from a tensor alone, computed once in a graph.

    A stack calls each of its blocks with the same positions. With TensorFlow, what follows from
    them is in the graph once instead of once in each block: graphs of deep models take minutes to
    trace and to optimise.

    Args:
        key: What the result depends on apart from the tensor, hashable.
        tensor: The tensor.
        compute: Function that computes the result.

    Returns:
        The result of `compute`, or with TensorFlow of an earlier call with the same tensor and an
        equal key in the same graph.
    """
    if keras.backend.backend() != "tensorflow":
        return compute()
    import tensorflow as tf  # not needed by other backends

    if tf.executing_eagerly() or not tf.is_tensor(tensor):
        return compute()
    graph = tf.compat.v1.get_default_graph()
    if getattr(tensor, "graph", None) is not graph:
        return compute()
    # The graph holds the results, so that they are freed with it. They hold the tensor: otherwise
    # another one could get its id.
    results = getattr(graph, RESULTS, None)
    if results is None:
        setattr(graph, RESULTS, results := {})
    key = (*key, id(tensor))
    if key not in results:
        results[key] = tensor, compute()
    return results[key][1]
