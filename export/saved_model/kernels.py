"""Output weights in the memory layout that a search reads fastest."""

import tensorflow as tf

from keras_transformer.decoding.loop import STAGES
from keras_transformer.layers.kernels import Kernels
from keras_transformer.tensors import Tensor

WIDTH = 4096  # largest number of columns in a block; rows of wider ones are memory pages apart
LANES = 16  # float32 numbers in a vector register; the width of a block is a multiple


class OutputMatrix:
    """Product with the tied output weights, from a transposed copy `[D, V]` of the table.

    The table itself is `[V, D]`, for embedding lookups. On a CPU, a step of a search runs 1.2 to 2
    times as fast with the copy; the product alone, with `[49173, 576]`, 1.2 times for one row and
    1.6 times for 8 rows. The copy is stored, because not every loader of SavedModels runs an
    initialiser that could compute it.

    With XLA the copy is split into blocks of columns, because XLA takes three times as long to
    multiply a few rows by a wide matrix as by its blocks. For a single row XLA is as fast with the
    table, but takes ten times as long if a bias is added.

    Args:
        table: The table, a variable `[V, D]`.
        jit: Whether XLA compiles the searches.

    Attributes:
        blocks: The variables that hold the copy.
    """

    def __init__(self, table, jit=False):
        vocab_size = table.shape[0]
        width = _width(vocab_size) if jit else vocab_size
        transposed = tf.transpose(table.value)  # [D, V]
        self.blocks = [
            tf.Variable(transposed[:, first : first + width], trainable=False, name="output_matrix")
            for first in range(0, vocab_size, width)
        ]

    def __call__(self, table, x) -> Tensor:
        """Returns the logits `[B, N, V]` of hidden states `[B, N, D]`."""
        vocab_size, depth = table.shape
        rows = tf.reshape(x, [-1, depth])  # [B * N, D]
        logits = tf.concat([tf.matmul(rows, block) for block in self.blocks], axis=1)  # [B * N, V]
        return tf.reshape(logits, [-1, x.shape[1] or tf.shape(x)[1], vocab_size])  # [B, N, V]


def output_kernels(model, jit=False) -> tuple[Kernels, list]:
    """Returns the `Kernels` for a copy of a model, and a list of the variables that they add.

    Args:
        model: A model that a search runs. Output weights that are not tied are `[D, V]`
            already, and need no other kernel.
        jit: Whether XLA compiles the searches.
    """
    stages = STAGES if jit else None  # XLA must know every shape
    if not model.output_weights.is_tied:
        return Kernels(cache_stages=stages), []
    matrix = OutputMatrix(model.output_layer.table, jit)
    return Kernels(project=matrix, cache_stages=stages), matrix.blocks


def _width(vocab_size):
    """Returns the width of blocks of nearly equal size, at most `WIDTH`."""
    count = -(-vocab_size // WIDTH)
    return -(-vocab_size // (count * LANES)) * LANES
