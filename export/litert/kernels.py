"""Kernels of a search step made of the operations that are fastest in LiteRT."""

import functools
import weakref
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from keras import ops

from keras_transformer.export.litert.compact import codes_of_rows, scales_of_rows
from keras_transformer.export.litert.serialization import read_model, schema, write_model
from keras_transformer.layers.kernels import similarity
from keras_transformer.never import never
from keras_transformer.tensors import Tensor

OPERATORS = schema.BuiltinOperator
# Number of hidden states from which XNNPACK's product in float32 is faster than LiteRT's own in
# int8 if the matrix is not a constant. Measured with 4,096 columns of 256 numbers: a whole step
# takes 2.3 ms in int8 and 3.2 ms in float32 for 32 states, and 6.7 ms and 5.0 ms for 128.
WIDE = 64


def write(cache, position, index) -> Tensor:
    """Writes a position `[B, G, N, K]` into a cache `[B, G, R * N, K]` by updating a slice.

    A select would read a condition for every element. TensorFlow itself has no CPU kernel for the
    update, so a model that uses it can only decode in LiteRT.
    """
    return ops.slice_update(cache, (0, 0, index * position.shape[2], 0), position)


class Positions:
    """Positions of which the converter does not know that they are constant; see `Kernels`.

    It would compute the distances of all positions, times the slopes of ALiBi, and store them for
    every length: 8 MiB for 512 positions and 8 heads. All layers of a graph share the number that
    prevents it, so that the file computes them once.
    """

    def __init__(self):
        self._zeros = weakref.WeakKeyDictionary()  # names by graph; a tensor would keep its graph

    def __call__(self, places, heads) -> Tensor:
        """Returns `places` `[T]`; the single position of a step depends on an input already."""
        if len(places.shape) == 0 or places.shape[0] == 1:
            return places
        graph = tf.compat.v1.get_default_graph()
        if graph not in self._zeros:
            self._zeros[graph] = never(heads).name
        return places + graph.get_tensor_by_name(self._zeros[graph])


def settle(heads) -> Tensor:
    """Returns the heads of a memory by an operation that stays outside of a loop.

    The converter would transpose the product of heads and a single query in every step, instead of
    the heads once.
    """
    places = ops.arange(heads.shape[2], dtype="int32") + never(heads)
    return tf.gather(heads, places, axis=2)


def single_similarity(query, key) -> Tensor:
    """Returns the scores of a single query, computed as a product and a sum.

    A matrix product would first convert the keys to another memory layout, for one row only.
    """
    if query.shape[2] != 1:
        return similarity(query, key)
    return ops.expand_dims(ops.sum(query * key, axis=-1), axis=2)  # [B, H, T=1, S]


def log_sum_exp(logits) -> Tensor:
    """Returns the logarithm of the sum of exponentials of each row: see `Kernels`.

    The selection of the largest logits reads their blocks as well. LiteRT would copy the logits for
    a second shape, which takes as long as the exponentials, and find the largest one twice.
    """
    largest = tf.reduce_max(logits.maxima, axis=-1, keepdims=True)  # [..., 1]
    powers = tf.exp(logits.blocks - tf.expand_dims(largest, -1))  # [..., count, size]
    return largest + tf.expand_dims(tf.math.log(tf.reduce_sum(powers, axis=[-2, -1])), -1)


class Int8Rows:
    """Kernels that read rows of matrices in int8, with one scale for each row.

    The converter quantises a table twice, for looking up embeddings and for the logits. Here the
    embeddings use exactly the numbers that it computes for the logits, so that it stores one copy.

    Args:
        tables: Embedding tables, variables `[V, D]`.
        kernel: Output weights that are not tied to a table, a variable `[D, V]`, or `None`.
        bias: Output bias, a variable `[V]`, or `None`.
        code_of: Function from the path of a variable to the number that stands for all of its codes
            in the graphs, or `None`: see `StandIns`.
    """

    def __init__(self, tables, kernel=None, bias=None, code_of=lambda path: None):
        self._bias = None if bias is None else _as_int32(bias.numpy())
        rows = {table.path: table.numpy() for table in tables}
        if kernel is not None:
            rows[kernel.path] = kernel.numpy().T
        self._rows = {path: self._stored(values, code_of(path)) for path, values in rows.items()}

    def look_up(self, table, tokens) -> Tensor:
        """Returns rows of a table, float32 `[B, T, D]`: see `Kernels`."""
        codes, scales = self._rows[table.path](tokens)
        return tf.cast(codes, tf.float32) * scales

    def restrict(self, weights, tokens, axis, dtype) -> Callable[[Tensor], Tensor]:
        """Returns the product with a few tokens' output weights, a function: see `Kernels`."""
        codes, scales = self._rows[weights.path](tokens)  # [C, D], [C, 1]
        scales = tf.squeeze(scales, 1)  # [C]
        columns = tf.cast(tf.transpose(codes), tf.float32) * scales  # [D, C]

        def product(x):
            width, count = codes.shape[1], codes.shape[0]
            flat = tf.reshape(x, [-1, width])  # [B * N, D]
            if (x.shape[0] or 1) * x.shape[1] >= WIDE:
                logits = tf.matmul(flat, columns)
            else:  # `multiply_in_int8` changes this to a product of integers
                logits = tf.matmul(flat, tf.cast(codes, tf.float32), transpose_b=True) * scales
            return tf.reshape(logits, [-1, x.shape[1], count])

        return product

    def pick(self, vector, tokens) -> Tensor:
        """Returns entries of the bias in float32; the converter would round a plain one to int8."""
        return tf.bitcast(tf.gather(self._bias, tokens), tf.float32)

    def _stored(self, table, code=None):
        """Stores a table and returns a function that returns rows of it.

        Args:
            table: Array `[V, D]`.
            code: See `stored_codes`.

        Returns:
            A function of tokens `[...]`. It returns the codes `[..., D]`, int8, and the scales
            `[..., 1]`, float32.
        """
        scales = scales_of_rows(table)  # [V]
        codes = stored_codes(lambda: codes_of_rows(table, scales), table.shape, code)
        scales_at = stored_scales(scales)
        return lambda tokens: (tf.gather(codes(), tokens), scales_at(tokens))


def stored_codes(compute, shape, code) -> Callable[[], Tensor]:
    """Stores codes and returns a function that returns them.

    They are a variable, because a constant would be part of the graph of every loop, and there are
    several copies of each graph during the conversion.

    Args:
        compute: Function that computes the codes, an array in int8.
        shape: Shape of that array.
        code: Number that stands for all codes, which are then not computed: see `StandIns`. `None`:
            the codes are a variable.
    """
    if code is not None:
        return functools.partial(tf.constant, code, tf.int8, shape)
    variable = tf.Variable(compute(), trainable=False)
    return lambda: variable


def stored_scales(scales) -> Callable[[Tensor], Tensor]:
    """Stores scales of rows `[V]` and returns a function from tokens `[...]` to theirs `[..., 1]`.

    The bits of the float32 scales are stored as a variable in int32, because the converter would
    round them to int8.
    """
    bits = tf.Variable(_as_int32(scales[:, None]), trainable=False)
    return lambda tokens: tf.bitcast(tf.gather(bits, tokens), tf.float32)


def multiply_in_int8(content) -> bytearray:
    """Returns a .tflite model in which products with a matrix cast from int8 use int8 directly.

    LiteRT can multiply by an int8 matrix that is not a constant, but the converter does not make
    use of this: it casts the whole matrix to float32 in every step.

    Args:
        content: The bytes of a .tflite model.
    """
    model = read_model(content)

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
                operator.inputs = operator.inputs.copy()  # a view of the content
                operator.inputs[1] = casts[operator.inputs[1]]
                graph.tensors[operator.inputs[1]].quantization = _integers()
                # With asymmetric inputs, LiteRT would reuse the row sums of the first matrix.
                operator.builtinOptions.asymmetricQuantizeInputs = False
        used = {number for operator in graph.operators for number in operator.inputs}
        used |= set(graph.outputs)
        graph.operators = [
            operator
            for operator in graph.operators
            if operator.outputs[0] not in casts or operator.outputs[0] in used
        ]
    return write_model(model)


def _integers():
    """Returns quantisation parameters with which integers represent their own values."""
    quantization = schema.QuantizationParametersT()
    quantization.scale = np.ones(1, np.float32)
    quantization.zeroPoint = np.zeros(1, np.int64)
    return quantization


def _as_int32(values):
    """Returns the bits of numbers in float32 as int32."""
    return values.astype(np.float32).view(np.int32)
