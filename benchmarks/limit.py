"""Speed of matrix products on the processor, an upper bound for training steps."""

import tensorflow as tf

SIZE = 2048  # 16 MiB per float32 matrix, so that the products take nearly all of the time


class MatrixProduct:
    """Products of square matrices, each of which depends on the previous one."""

    def __init__(self, precision):
        dtype = tf.bfloat16 if precision == "mixed_bfloat16" else tf.float32
        left, right = (tf.cast(tf.random.normal((SIZE, SIZE)), dtype) for _ in range(2))
        right /= SIZE**0.5
        self.metadata = {"flops": 2 * SIZE**3}
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
    """Returns the `MatrixProduct` in a precision."""
    return MatrixProduct(order["precision"])
