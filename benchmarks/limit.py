"""Speed of matrix products on the processor, which no training step can surpass."""

import tensorflow as tf

SIZE = 2048  # 16 MiB a matrix in float32: large enough that the product is all that takes time


class MatrixProduct:
    """Products of two square matrices, each waiting for the one before it."""

    def __init__(self, precision):
        dtype = tf.bfloat16 if precision == "mixed_bfloat16" else tf.float32
        left, right = (tf.cast(tf.random.normal((SIZE, SIZE)), dtype) for _ in range(2))
        right /= SIZE**0.5
        self.facts = {"flops": 2 * SIZE**3}
        self._left, self._right = left, right
        self._multiply = tf.function(lambda left, right: tf.matmul(left, right))

    def run(self, steps):
        """Multiplies `steps` times."""
        product = self._left
        for _ in range(steps):
            product = self._multiply(product, self._right)
        product.numpy()
        return {}


def make(order):
    """Returns the matrix product of a precision."""
    return MatrixProduct(order["precision"])
