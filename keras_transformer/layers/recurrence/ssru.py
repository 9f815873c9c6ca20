"""The Simpler Simple Recurrent Unit, which decoders of small models have for self-attention."""

import keras
from keras import ops

from keras_transformer.layers.attending import AttendingLayer
from keras_transformer.layers.call_checks import check_mask_of_positions
from keras_transformer.layers.masks import join_masks
from keras_transformer.layers.recurrence.scan import linear_recurrence


@keras.saving.register_keras_serializable(package="keras_transformer")
class SSRU(AttendingLayer):
    """A state that forgets and learns, feature by feature; causal by its nature.

    `f_t = sigmoid(x_t W_f + b_f)`, `c_t = f_t * c_(t-1) + (1 - f_t) * (x_t W)` from `c_(-1) = 0`,
    and the output is `relu(c_t)`.

    A position costs the same however many came before it: what a search keeps of them is one state
    of D features. The states are float32 under the mixed policies as well.

    Args:
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: `[B, T, D]`, floating.
        allowed: Boolean `[B, T]` or `[B, 1, T]`, `True` where a position is real: others leave the
            state as it is. `None`: all are. Padding after a text needs no mask.
        mask: Boolean `[B, T]`, joined with `allowed`. `None`: the mask that Keras attached to `x`,
            if it did.

    Returns:
        `[B, T, D]`.

    Raises:
        ValueError: If `allowed` depends on the position that reads.

    Example:
        >>> import keras
        >>> from keras_transformer import SSRU
        >>> SSRU()(keras.random.normal((2, 5, 16))).shape
        TensorShape([2, 5, 16])

    Reference: Kim et al. (2019), "From Research to Production and Back: Ludicrously Fast Neural
        Machine Translation".
    """

    def build(self, x_shape, allowed_shape=None):  # noqa: D102
        self.check_shapes(x=x_shape)
        width = x_shape[-1]
        self.candidate = keras.layers.Dense(
            width, use_bias=False, dtype=self.dtype_policy, name="candidate"
        )
        self.forget = keras.layers.Dense(width, dtype=self.dtype_policy, name="forget")
        self.candidate.build((None, width))
        self.forget.build((None, width))

    def checked_arguments(self, given):  # noqa: D102
        check_mask_of_positions(given.get("allowed"), self)
        return super().checked_arguments(given)

    def call(self, x, allowed=None, mask=None):  # noqa: D102
        keep, add = self._gates(x)  # [B, T, D] twice
        real = join_masks(allowed, mask)
        if real is not None:
            real = ops.swapaxes(real, 1, 2)  # [B, T, 1]
            keep, add = ops.where(real, keep, 1.0), ops.where(real, add, 0.0)
        return self._output(linear_recurrence(keep, add))

    def _gates(self, x):
        """The share of the state that stays, and the addition to it, `[B, T, D]` each."""
        flat = ops.reshape(x, (-1, x.shape[-1]))  # [B * T, D]
        shape, dtype = ops.shape(x), self.state_dtype
        candidate = ops.cast(self.kernels.dense(self.candidate, flat), dtype)  # [B * T, D]
        keep = ops.sigmoid(ops.cast(self.kernels.dense(self.forget, flat), dtype))  # [B * T, D]
        return ops.reshape(keep, shape), ops.reshape((1 - keep) * candidate, shape)

    def _output(self, states):
        return ops.cast(ops.relu(states), self.compute_dtype)

    @property
    def state_dtype(self):
        """Dtype of the states, at least float32: 16 bits lose small changes of a sum."""
        return keras.backend.result_type(self.compute_dtype, "float32")

    def empty_cache(self, batch, length, width=1):
        """Returns the states before the first position, zeros.

        Args:
            batch: Number of sentences B, an integer or a scalar tensor.
            length: Number of positions; the states have room for any.
            width: Number of hypotheses of a sentence N, a Python integer.

        Returns:
            A tuple of one tensor `[B, N, D]`.
        """
        return (ops.zeros((batch, width, self.widths["x"]), self.state_dtype),)

    def extended_cache(self, cache, length):
        """Returns the states as they are: they have room for any number of positions."""
        return cache

    def step(self, x, cache, index, allowed=None):
        """Goes on by one position.

        Args:
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`.
            cache: From `empty_cache` or the previous step. Hypotheses that change places take
                theirs along: it is gathered.
            index: Number of the position, which changes nothing.
            allowed: `None`: a state holds the positions of its own hypothesis.

        Returns:
            The output `[B, N, D]` and the cache after it.

        Raises:
            ValueError: If there is a mask.
        """
        if allowed is not None:
            raise ValueError(
                "`allowed` must be None for a step of an SSRU, whose state holds the positions of "
                f"its own hypothesis. Received by {self.name!r}: a mask {tuple(allowed.shape)}."
            )
        keep, add = self._gates(x)  # [B, N, D] twice
        states = keep * cache[0] + add  # [B, N, D]
        return self._output(states), (states,)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config()  # without a method of its own Keras takes it for unfinished
