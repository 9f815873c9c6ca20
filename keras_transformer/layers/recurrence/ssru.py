"""The Simpler Simple Recurrent Unit, which replaces self-attention in decoders of small models."""

from typing import Any

import keras
from keras import ops

from keras_transformer.layers.attending import AttendingLayer
from keras_transformer.layers.call_checks import check_mask_of_positions
from keras_transformer.layers.masks import join_masks
from keras_transformer.layers.recurrence.scan import linear_recurrence
from keras_transformer.tensors import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class SSRU(AttendingLayer):
    """Simpler Simple Recurrent Unit: a causal recurrent layer with a forget gate for each feature.

    `f_t = sigmoid(x_t W_f + b_f)`, `c_t = f_t * c_(t-1) + (1 - f_t) * (x_t W)` with `c_(-1) = 0`,
    and the output is `relu(c_t)`.

    The cost of a position does not depend on the number of earlier ones: the cache of a search is
    a single state of D features. The states are float32 even under mixed-precision policies.

    Args:
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: `[B, T, D]`, floating.
        allowed: Boolean `[B, T]` or `[B, 1, T]`, `True` for positions that are not padding; the
            others do not change the state. `None`: no padding. Padding after a text needs no mask.
        mask: Boolean `[B, T]`, combined with `allowed`. `None`: the mask that Keras attached to
            `x`, if any.

    Returns:
        `[B, T, D]`.

    Raises:
        ValueError: If `allowed` depends on the query position.

    Example:
        >>> import keras
        >>> from keras_transformer import SSRU
        >>> SSRU()(keras.random.normal((2, 5, 16))).shape
        TensorShape([2, 5, 16])

    Reference: Kim et al. (2019), "From Research to Production and Back: Ludicrously Fast Neural
        Machine Translation".
    """

    def build(self, x_shape: Shape, allowed_shape: Shape | None = None) -> None:  # noqa: D102
        self.check_shapes(x=x_shape)
        width = x_shape[-1]
        self.candidate = keras.layers.Dense(
            width, use_bias=False, dtype=self.dtype_policy, name="candidate"
        )
        self.forget = keras.layers.Dense(width, dtype=self.dtype_policy, name="forget")
        self.candidate.build((None, width))
        self.forget.build((None, width))

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        check_mask_of_positions(given.get("allowed"), self)
        return super().checked_arguments(given)

    def call(self, x: Tensor, allowed: Tensor | None = None, mask: Tensor | None = None) -> Tensor:  # noqa: D102
        keep, add = self._gates(x)  # [B, T, D] twice
        real = join_masks(allowed, mask)
        if real is not None:
            real = ops.swapaxes(real, 1, 2)  # [B, T, 1]
            keep, add = ops.where(real, keep, 1.0), ops.where(real, add, 0.0)
        return self._output(linear_recurrence(keep, add))

    def _gates(self, x):
        """Returns the fraction of the state to keep and the term to add, `[B, T, D]` each."""
        flat = ops.reshape(x, (-1, x.shape[-1]))  # [B * T, D]
        shape, dtype = ops.shape(x), self.state_dtype
        candidate = ops.cast(self.kernels.dense(self.candidate, flat), dtype)  # [B * T, D]
        keep = ops.sigmoid(ops.cast(self.kernels.dense(self.forget, flat), dtype))  # [B * T, D]
        return ops.reshape(keep, shape), ops.reshape((1 - keep) * candidate, shape)

    def _output(self, states):
        return ops.cast(ops.relu(states), self.compute_dtype)

    @property
    def state_dtype(self) -> str:
        """Dtype of the states, at least float32: a sum in 16 bits loses small changes."""
        return keras.backend.result_type(self.compute_dtype, "float32")

    def empty_cache(self, batch: int, length: int, width: int = 1) -> tuple[Tensor]:
        """Returns the states before the first position, filled with zeros.

        Args:
            batch: Number of sentences B, an integer or a scalar tensor.
            length: Number of positions; ignored, as states have no maximum length.
            width: Number of hypotheses per sentence N, a Python integer.

        Returns:
            A tuple of one tensor `[B, N, D]`.
        """
        return (ops.zeros((batch, width, self.widths["x"]), self.state_dtype),)

    def extended_cache(self, cache: Any, length: int, width: int) -> tuple[Tensor]:
        """Returns the states unchanged, as they have no maximum length."""
        return cache

    def step(
        self, x: Tensor, cache: Any, index: Tensor, allowed: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor]]:
        """Computes one further position.

        Args:
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`.
            cache: From `empty_cache` or the previous step. A search that reorders its hypotheses
                must reorder the states as well.
            index: Index of the position; ignored.
            allowed: Must be `None`: a state contains only the positions of its own hypothesis.

        Returns:
            The output `[B, N, D]` and the new cache.

        Raises:
            ValueError: If `allowed` is not `None`.
        """
        if allowed is not None:
            raise ValueError(
                "`allowed` must be None in a step of an SSRU, whose state contains only the "
                f"positions of its own hypothesis. Received by {self.name!r}: "
                f"a mask {tuple(allowed.shape)}."
            )
        keep, add = self._gates(x)  # [B, N, D] twice
        states = keep * cache[0] + add  # [B, N, D]
        return self._output(states), (states,)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config()  # Keras requires that a layer overrides this method
