"""Operations on ragged rows in the graph, with memory that does not depend on the longest row.

`tf.repeat`, and with it `RaggedTensor.value_rowids` and `tf.reduce_sum`, first makes all rows as
long as the longest one: one text of 100,000 letters in a batch of short ones would take gigabytes.
"""

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


def row_ids(ragged) -> Tensor:
    """Returns the row number of each value of a ragged tensor `[B, (N)]`, in order.

    The result equals `RaggedTensor.value_rowids`, including its dtype.
    """
    splits = ragged.row_splits
    places = tf.range(splits[-1])
    return tf.searchsorted(splits, places, side="right", out_type=splits.dtype) - 1


def row_sums(ragged) -> Tensor:
    """Returns the sum of each row of a ragged tensor of integers `[B, (N)]`, as `[B]`."""
    sums = tf.concat([[0], tf.cumsum(ragged.values)], 0)
    return tf.gather(sums, ragged.row_splits[1:]) - tf.gather(sums, ragged.row_splits[:-1])


def repeated(values, counts) -> Tensor:
    """Returns each value `[N]` as many times as its count `[N]` says, like `tf.repeat`."""
    ends = tf.cumsum(counts)
    total = tf.reduce_sum(counts)
    return tf.gather(values, tf.searchsorted(ends, tf.range(total), side="right"))
