"""A step of the search out of the operations that LiteRT does fastest."""

import numpy as np
import tensorflow as tf
from keras import ops
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

from keras_transformer.export.litert.compact import codes_of_rows, scales_of_rows
from keras_transformer.layers.kernels import similarity

OPERATORS = schema.BuiltinOperator
# Hidden states at a time from which XNNPACK's product in float32 is faster than LiteRT's own in
# int8 where the matrix is no constant. Seen, 4,096 columns of 256: of 32 states a step of all
# takes 2.3 ms in int8 and 3.2 in float32, of 128 6.7 and 5.0.
WIDE = 64


def write(cache, position, index):
    """Writes a position into the cache by an update of a slice, which is a plain copy.

    A select reads a condition for every element. TensorFlow itself has no kernel for this on the
    processor: a model with it cannot decode there.
    """
    return ops.slice_update(cache, (0, 0, index, 0), position)


def single_similarity(query, key):
    """Scores of a single query as a product and a sum.

    A matrix product would first bring every matrix of keys into another layout for one row.
    """
    if query.shape[2] != 1:
        return similarity(query, key)
    return ops.expand_dims(ops.sum(query * key, axis=-1), axis=2)  # [B, H, T=1, S]


class Int8Rows:
    """Rows of matrices in int8, one scale per row.

    The converter quantises a table once for looking up and once for the logits. With the very
    numbers that it computes for the logits, it stores one.

    Args:
        tables: Tables, variables `[V, D]`.
        kernel: Output weights that are no table, a variable `[D, V]`, or `None`.
        bias: Their bias, a variable `[V]`, or `None`.
    """

    def __init__(self, tables, kernel=None, bias=None):
        self._bias = None if bias is None else _disguised(bias.numpy())
        self._rows = {table.path: _in_int8(table.numpy()) for table in tables}
        if kernel is not None:
            self._rows[kernel.path] = _in_int8(kernel.numpy().T)

    def look_up(self, table, tokens):
        """Returns rows of a table, float32 `[B, T, D]`: see `Kernels`."""
        codes, scales = self._gathered(table, tokens)
        return tf.cast(codes, tf.float32) * scales

    def restrict(self, weights, tokens, axis, dtype):
        """Returns the product with the output weights of a few tokens: see `Kernels`."""
        codes, scales = self._gathered(weights, tokens)  # [C, D], [C, 1]
        scales = tf.squeeze(scales, 1)  # [C]
        columns = tf.cast(tf.transpose(codes), tf.float32) * scales  # [D, C]

        def product(x):
            width, count = codes.shape[1], codes.shape[0]
            flat = tf.reshape(x, [-1, width])  # [B * N, D]
            if (x.shape[0] or 1) * x.shape[1] >= WIDE:
                logits = tf.matmul(flat, columns)
            else:  # what `multiply_in_int8` makes a product of integers
                logits = tf.matmul(flat, tf.cast(codes, tf.float32), transpose_b=True) * scales
            return tf.reshape(logits, [-1, x.shape[1], count])

        return product

    def pick(self, vector, tokens):
        """Returns entries of the bias, in float32: the converter would also round it to 8 bits."""
        return tf.bitcast(tf.gather(self._bias, tokens), tf.float32)

    def _gathered(self, matrix, tokens):
        codes, scales = self._rows[matrix.path]
        return tf.gather(codes, tokens), tf.bitcast(tf.gather(scales, tokens), tf.float32)


def multiply_in_int8(content):
    """Returns a .tflite model in which products with numbers cast from int8 are those of int8.

    LiteRT multiplies by a matrix in int8 that is no constant as well, but the converter makes none
    of that: it casts the whole matrix to float32 at each step.

    Args:
        content: The bytes of a .tflite model.
    """
    model = flatbuffer_utils.read_model_from_bytearray(bytearray(content))

    def kind(operator):
        return model.operatorCodes[operator.opcodeIndex].builtinCode

    for graph in model.subgraphs:
        casts = {
            operator.outputs[0]: operator.inputs[0]
            for operator in graph.operators
            if kind(operator) == OPERATORS.CAST
            and graph.tensors[operator.inputs[0]].type == schema.TensorType.INT8
        }
        for operator in graph.operators:
            if kind(operator) == OPERATORS.FULLY_CONNECTED and operator.inputs[1] in casts:
                operator.inputs[1] = casts[operator.inputs[1]]
                graph.tensors[operator.inputs[1]].quantization = _integers()
                # With a zero point of its own LiteRT would keep sums of the first matrix it meets.
                operator.builtinOptions.asymmetricQuantizeInputs = False
        used = {number for operator in graph.operators for number in operator.inputs}
        used |= set(graph.outputs)
        graph.operators = [
            operator
            for operator in graph.operators
            if operator.outputs[0] not in casts or operator.outputs[0] in used
        ]
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def _integers():
    """The quantisation of numbers that stand for themselves."""
    quantization = schema.QuantizationParametersT()
    quantization.scale = np.ones(1, np.float32)
    quantization.zeroPoint = np.zeros(1, np.int64)
    return quantization


def _in_int8(table):
    """Codes `[V, D]`, int8, and scales `[V, 1]`, float32 that are dressed up as int32: variables.

    The converter would also round the scales to 8 bits. Constants would be in the graph of every
    loop, and of each graph there are several copies while a file is made.
    """
    scales = scales_of_rows(table)[:, None]  # [V, 1]
    codes = codes_of_rows(table, scales[:, 0])  # [V, D]
    return tuple(tf.Variable(values, trainable=False) for values in (codes, _disguised(scales)))


def _disguised(values):
    return values.astype(np.float32).view(np.int32)
