"""Zero that is computed when a graph runs: a converter does not store what follows from it."""

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


def never(values: Tensor) -> "tf.Tensor":
    """Returns 0, a scalar int32 of which no converter knows that it is constant.

    A converter computes everything that depends on constants alone, such as a table of the
    distances of all positions, and stores the result. Added to a constant, this number prevents it.

    Args:
        values: An input of the graph, or what follows from one: floating, of a known rank.
    """
    first = values[(slice(1),) * values.shape.rank]
    return tf.cast(tf.reduce_any(first > float("inf")), tf.int32)
