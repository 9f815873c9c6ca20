"""A mixer that the package does not have, in a folder that a test adds to its mixers."""

from keras_transformer.lazy_keras import ops
from keras_transformer.mixers.mixer import Mixer
from keras_transformer.variants import declared


@declared
class RunningMean(Mixer):
    """Mean of all positions, or in a causal layer of those so far."""

    kind = "running_mean"
    about = "a mean of the positions"

    def call(self, layer, x, real=None):
        real = ops.ones_like(x[..., :1]) if real is None else ops.cast(real, x.dtype)
        count = ops.cumsum(real + 0 * x[..., :1], axis=1)  # [B, T, 1]
        total = ops.cumsum(x * real, axis=1)
        if not layer.causal:
            total, count = total[:, -1:] + 0 * x, count[:, -1:]
        return total / ops.maximum(count, 1)

    def state_shapes(self, width):
        return (width,), (1,)

    def step(self, layer, x, state, index):
        total, count = state[0] + ops.cast(x, layer.state_dtype), state[1] + 1
        return ops.cast(total / count, layer.compute_dtype), (total, count)
