"""Layer normalisation (section 3.1) and RMS normalisation."""

from typing import Any

import keras
from keras import ops

from keras_transformer.checks import check_positive
from keras_transformer.devices import has_only_cpus
from keras_transformer.gradients import custom_gradient
from keras_transformer.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class LayerNormalization(keras.layers.LayerNormalization):
    """`keras.layers.LayerNormalization` over the last axis, faster in training.

    The output is `n * gamma + beta` with `n = (x - mean) / sqrt(variance + epsilon)`. If `g` is the
    gradient with respect to the output times `gamma`, the gradient with respect to `x` is

        (g - mean of g - n * mean of (g * n)) / sqrt(variance + epsilon)

    This form makes a third of the passes over `x` that automatic differentiation makes. On a CPU,
    means are computed as products with a constant column, which are faster than reductions; on
    GPUs and TPUs they are reductions, because there products round their factors to fewer bits than
    float32. Outside training, with another axis, or without `center` or `scale`, the layer behaves
    exactly like Keras's.

    Args:
        epsilon: Added to the variance.
        **kwargs: The other arguments of `keras.layers.LayerNormalization`, and `name`, `dtype` and
            `trainable` as in every Keras layer.

    Call arguments:
        inputs: `[..., D]`, floating.
        training: Whether to compute with the closed-form gradient.

    Returns:
        `[..., D]`, of the same dtype.

    Reference: Ba et al. (2016); Vaswani et al. (2017), section 3.1.
    """

    def __init__(self, epsilon: float = 1e-3, **kwargs: Any):
        check_positive("epsilon", epsilon)
        super().__init__(epsilon=epsilon, **kwargs)

    def call(self, inputs, training=None) -> Tensor:  # noqa: D102
        last = self.axis in ([-1], [len(inputs.shape) - 1])
        # With `rms_scaling` there is no `beta`, regardless of `center`.
        if not training or not last or self.gamma is None or self.beta is None:
            return super().call(inputs)
        flat = ops.reshape(inputs, (-1, inputs.shape[-1]))  # [N, D]
        gamma, beta = (ops.reshape(tensor, (1, -1)) for tensor in (self.gamma, self.beta))  # [1, D]
        means = PRODUCTS if products_are_exact() else REDUCTIONS
        normalize = _normalize(self.epsilon, *means)
        return ops.reshape(normalize(flat, gamma, beta), ops.shape(inputs))


@keras.saving.register_keras_serializable(package="keras_transformer")
class RMSNormalization(keras.layers.RMSNormalization):
    """`keras.layers.RMSNormalization` over the last axis, which multiplies by `scale` first.

    The output is `(x * scale) / sqrt(mean of x^2 + epsilon)`. LiteRT's converter would multiply the
    weights of the next product by a scale that comes last. It would then store a table that is also
    read elsewhere, such as that of tied output weights, a second time; and in int8 a row of weights
    whose columns have different scales is less exact.

    Args:
        epsilon: Added to the mean square.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: `[..., D]`, floating.

    Returns:
        `[..., D]`, of the same dtype, computed in at least float32.

    Reference: Zhang and Sennrich (2019), "Root Mean Square Layer Normalization", Eq. 4.
    """

    def __init__(self, epsilon: float = 1e-6, **kwargs: Any):
        check_positive("epsilon", epsilon)
        super().__init__(epsilon=epsilon, **kwargs)

    def call(self, x) -> Tensor:  # noqa: D102
        own, dtype = x.dtype, keras.backend.result_type(x.dtype, "float32")
        x = ops.cast(x, dtype)
        inverse = ops.rsqrt(_mean(x * x) + self.epsilon)  # [..., 1]
        return ops.cast(x * ops.cast(self.scale, dtype) * inverse, own)


def products_are_exact() -> bool:
    """Returns whether products of float32 matrices are computed in float32, as only on CPUs.

    NVIDIA's GPUs keep 10 bits of the factors (TF32), TPUs 7 (bfloat16).
    """
    return keras.backend.backend() == "tensorflow" and has_only_cpus()


def _mean_by_product(x, factors=None):
    """Returns means `[N, 1]` of `x * factors`, `[N, D]` and `[1, D]`, over the last axis."""
    column = ops.full((x.shape[-1], 1), 1 / x.shape[-1], x.dtype)  # [D, 1]
    return ops.matmul(x, column if factors is None else column * ops.transpose(factors))


def _sum_by_product(x):
    """Returns sums `[1, D]` of `x` `[N, D]` over the first axis."""
    return ops.matmul(ops.ones((1, ops.shape(x)[0]), x.dtype), x)


def _mean(x, factors=None):
    return ops.mean(x if factors is None else x * factors, axis=-1, keepdims=True)


def _sum(x):
    return ops.sum(x, axis=0, keepdims=True)


PRODUCTS = (_mean_by_product, _sum_by_product)
REDUCTIONS = (_mean, _sum)


def _normalize(epsilon, mean, total):
    @custom_gradient
    def normalize(x, gamma, beta):
        dtype = keras.backend.result_type(x.dtype, "float32")
        x32, scale, offset = (ops.cast(tensor, dtype) for tensor in (x, gamma, beta))
        centred = x32 - mean(x32)  # [N, D]
        inverse = ops.rsqrt(mean(centred * centred) + epsilon)  # [N, 1]
        n = centred * inverse  # [N, D]

        def gradient(upstream):
            upstream = ops.cast(upstream, dtype)  # [N, D]
            weighted = upstream * n  # [N, D]
            mean_g, mean_gn = mean(upstream, scale), mean(weighted, scale)  # [N, 1]
            by_x = inverse * (upstream * scale - mean_g - n * mean_gn)  # [N, D]
            return tuple(
                ops.cast(value, like.dtype)
                for value, like in ((by_x, x), (total(weighted), gamma), (total(upstream), beta))
            )

        return ops.cast(n * scale + offset, x.dtype), gradient

    return normalize
