"""Random numbers that are the same eagerly, in a graph and under XLA.

TensorFlow's own generators are not: `tf.random.stateless_uniform` with `alg="philox"` returns
other numbers when compiled, and with `alg="threefry"` it has no CPU kernel.
"""

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def uniforms(seed, length) -> Tensor:
    """Returns uniform numbers in [0, 1) that depend only on the seed and the index.

    Args:
        seed: `[B, 2]`, int32.
        length: Number L of values for each seed, a Python integer. A longer sequence begins with
            the same values.

    Returns:
        `[B, L]`, float32, multiples of 2**-24.
    """
    key = tf.bitcast(seed, tf.uint32)  # [B, 2]
    places = tf.expand_dims(tf.range(length), 0) + tf.zeros_like(seed[:, :1])  # [B, L]
    counter = tf.bitcast(places, tf.uint32)
    bits, _ = threefry(key[:, :1], key[:, 1:], counter, tf.zeros_like(counter))  # [B, L]
    bits = tf.bitcast(tf.bitwise.right_shift(bits, tf.constant(8, tf.uint32)), tf.int32)
    return tf.cast(bits, tf.float32) * 2.0**-24


def threefry(key0, key1, x0, x1) -> tuple[Tensor, Tensor]:
    """Encrypts the words of a counter with a key: Threefry-2x32 with 20 rounds.

    Args:
        key0: First word of the key, uint32.
        key1: Second word of the key, of the same shape.
        x0: First word of the counter, uint32, of a shape to which the key can be broadcast.
        x1: Second word of the counter, of the same shape.

    Returns:
        Two random words of the shape of the counter.

    Reference: Salmon et al. (2011), "Parallel Random Numbers: As Easy as 1, 2, 3", section 4.
    """
    parity = tf.bitwise.bitwise_xor(key0, key1)
    keys = (key0, key1, tf.bitwise.bitwise_xor(parity, tf.constant(PARITY, tf.uint32)))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for number in range(5):
        for rotation in ROTATIONS[number % 2]:
            x0 = x0 + x1
            x1 = tf.bitwise.bitwise_xor(_rotate(x1, rotation), x0)
        x0 = x0 + keys[(number + 1) % 3]
        x1 = x1 + keys[(number + 2) % 3] + tf.constant(number + 1, tf.uint32)
    return x0, x1


def _rotate(x, count):
    # A product and an exclusive or, because LiteRT has neither a left shift nor an or.
    left = x * tf.constant(1 << count, tf.uint32)
    right = tf.bitwise.right_shift(x, tf.constant(32 - count, tf.uint32))
    return tf.bitwise.bitwise_xor(left, right)
