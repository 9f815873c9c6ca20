"""Layer normalisation with its gradient in closed form (section 3.1)."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_transformer")
class LayerNormalization(keras.layers.LayerNormalization):
    """`keras.layers.LayerNormalization` over the last axis, faster in training.

    With `n = (x - mean) / sqrt(variance + epsilon)` the output is `n * gamma + beta`, and with
    `g` its gradient times `gamma` the gradient by `x` is

        (g - mean of g - n * mean of (g * n)) / sqrt(variance + epsilon)

    Written out it needs a third of the passes over `x` that automatic differentiation makes. Means
    are products with a constant column, which CPUs and TPUs do faster than reductions. Without
    training it is Keras' layer.

    Args:
        epsilon: Added to the variance.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        inputs: `[..., D]`, floating.
        training: Whether to prepare for a gradient.

    Returns:
        `[..., D]`, of the same dtype.

    Reference: Ba et al. (2016); Vaswani et al. (2017), section 3.1.
    """

    def call(self, inputs, training=None):  # noqa: D102
        if not training:
            return super().call(inputs)
        flat = ops.reshape(inputs, (-1, inputs.shape[-1]))  # [N, D]
        gamma, beta = (ops.reshape(each, (1, -1)) for each in (self.gamma, self.beta))  # [1, D]
        return ops.reshape(_normalize(self.epsilon)(flat, gamma, beta), ops.shape(inputs))


def _normalize(epsilon):
    @ops.custom_gradient
    def normalize(x, gamma, beta):
        dtype = keras.backend.result_type(x.dtype, "float32")
        x32, scale, offset = (ops.cast(each, dtype) for each in (x, gamma, beta))
        column = ops.full((x.shape[-1], 1), 1 / x.shape[-1], dtype)  # [D, 1]: makes means
        centred = x32 - ops.matmul(x32, column)  # [N, D]
        inverse = ops.rsqrt(ops.matmul(centred * centred, column) + epsilon)  # [N, 1]
        n = centred * inverse  # [N, D]

        def gradient(upstream):
            upstream = ops.cast(upstream, dtype)  # [N, D]
            weighted = upstream * n  # [N, D]
            row = ops.ones((1, ops.shape(upstream)[0]), dtype)  # [1, N]: makes sums
            by_gamma, by_beta = ops.matmul(row, weighted), ops.matmul(row, upstream)  # [1, D]
            scaled = column * ops.transpose(scale)  # [D, 1]: makes means of products with gamma
            own, along = ops.matmul(upstream, scaled), ops.matmul(weighted, scaled)  # [N, 1]
            by_x = inverse * (upstream * scale - own - n * along)  # [N, D]
            return tuple(
                ops.cast(each, like.dtype)
                for each, like in ((by_x, x), (by_gamma, gamma), (by_beta, beta))
            )

        return ops.cast(n * scale + offset, x.dtype), gradient

    return normalize
