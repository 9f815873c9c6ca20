"""Dropout with a quarter of the random bits (section 5.4)."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from keras_transformer.checks import check_rate
from keras_transformer.tensors import Tensor

STEPS = 2**16  # values of the 16 random bits that determine whether an element is kept


@keras.saving.register_keras_serializable(package="keras_transformer")
class Dropout(keras.layers.Dropout):
    """`keras.layers.Dropout`, faster on TensorFlow.

    Most of the cost of dropout is drawing random numbers. This layer draws 8 random bits per
    element instead of 32. An element is dropped if a number of 16 bits is below a threshold: its
    own 8 bits, followed by those of another element, which matter in one of 256 cases. The rate is
    thus a multiple of 1 / 65,536 (0.1 becomes 0.10001), and two elements that share bits have a
    correlation of at most 1 / 256. On other backends, or with a noise shape, it behaves exactly
    like `keras.layers.Dropout`.

    Args:
        rate: Fraction of elements to set to zero, from 0 to 1; the others are scaled by
            `1 / (1 - rate)`.
        **kwargs: `noise_shape`, `seed`, `name`, `dtype` as in `keras.layers.Dropout`.

    Call arguments:
        inputs: Tensor of any shape, floating.
        training: Whether dropout is active.

    Returns:
        A tensor of the same shape and dtype.

    Reference: Srivastava et al. (2014); Vaswani et al. (2017), section 5.4.
    """

    def __init__(
        self,
        rate: float,
        noise_shape: Sequence[int | None] | None = None,
        seed: int | keras.random.SeedGenerator | None = None,
        **kwargs: Any,
    ):
        if rate != 1:  # Keras accepts a rate of 1, which drops everything
            check_rate("rate", rate)
        super().__init__(rate, noise_shape=noise_shape, seed=seed, **kwargs)

    def rematerialized_call(self, layer_call, *args, **kwargs) -> Callable:
        """Returns `call`: in a `keras.RematScope`, Keras would draw another mask for gradients."""
        return layer_call

    def call(self, inputs, training=False) -> Tensor:  # noqa: D102
        threshold = round(self.rate * STEPS)
        ours = keras.backend.backend() == "tensorflow" and self.noise_shape is None
        if not training or not 0 < threshold < STEPS or not ours:
            return super().call(inputs, training=training)
        keep = _keep(ops.shape(inputs), threshold, self.seed_generator.next())
        scale = ops.cast(STEPS / (STEPS - threshold), inputs.dtype)
        # Multiplying by a tensor of factors keeps the gradient a product, not another selection.
        return inputs * ops.where(keep, scale, ops.zeros_like(scale))


def _keep(shape, threshold, seed):
    """Returns a mask of the elements to keep, whose random numbers are at least `threshold`.

    The numbers of the first half are the bytes (0, 1), (2, 3), ... of a random sequence, those of
    the second half (1, 2), (3, 4), ...; on every machine one of the two is the upper byte of all.
    """
    import tensorflow as tf  # not needed on other backends

    size = tf.reduce_prod(shape)
    even = size + size % 2
    words = tf.random.stateless_uniform(
        [even // 4 + 1], tf.cast(seed, tf.int32), minval=None, maxval=None, dtype=tf.uint32
    )
    octets = tf.reshape(tf.bitcast(words, tf.uint8), [-1])
    pairs = (tf.reshape(octets[start : start + even], [-1, 2]) for start in (0, 1))
    kept = [tf.bitcast(pair, tf.uint16) >= tf.constant(threshold, tf.uint16) for pair in pairs]
    return tf.reshape(tf.concat(kept, axis=0)[:size], shape)
