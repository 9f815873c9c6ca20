"""A layer that reads other positions with a state of fixed size, in place of self-attention."""

from typing import Any

import keras
from keras import ops

from keras_transformer.checks import check_flag
from keras_transformer.layers.attending import AttendingLayer
from keras_transformer.layers.call_checks import check_mask_of_positions
from keras_transformer.layers.masks import join_masks
from keras_transformer.mixers import Mixer
from keras_transformer.norms import LayerNorm
from keras_transformer.tensors import Shape, Tensor
from keras_transformer.variants import plain


@keras.saving.register_keras_serializable(package="keras_transformer")
class Mixing(AttendingLayer):
    """Computes a `Mixer` other than self-attention, such as an `SSRU`.

    Args:
        mixer: The `Mixer`, or its name.
        causal: Whether a position depends only on itself and earlier ones; always with some mixers,
            such as an `SSRU`.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: `[B, T, D]`, floating.
        attention_mask: Boolean `[B, 1, T]`, `True` for positions that are not padding; the others
            do not change the state. `None`: no padding. Padding after a text needs no
            mask.
        mask: Boolean `[B, T]`, combined with `attention_mask`. `None`: the mask that Keras attached
            to `x`, if any.

    Returns:
        `[B, T, D]`, in the width that the mixer states if it has `units`.

    Raises:
        ValueError: If `attention_mask` depends on the query position.
    """

    def __init__(self, mixer: Mixer | str | dict[str, Any], causal: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        check_flag("causal", causal)
        self.mixer = Mixer.make(mixer)
        self.causal = causal or self.mixer.is_causal
        if self.mixer.attends:
            raise ValueError(
                "`mixer` must not be self-attention, which is a layer of its own, "
                f"`MultiHeadSelfAttention`. Received: mixer={self.mixer!r}."
            )

    def build(self, x_shape: Shape, attention_mask_shape: Shape | None = None) -> None:  # noqa: D102
        self.check_shapes(x=x_shape)
        self.mixer.build(self, x_shape[-1])

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        check_mask_of_positions(given.get("attention_mask"), "attention_mask", self)
        return super().checked_arguments(given)

    def call(
        self, x: Tensor, attention_mask: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:  # noqa: D102
        real, packing = join_masks(attention_mask, mask), self.kernels.packing
        x = packing.unpack(x, attention_mask)  # [B, T, D]
        x = self.mixer.call(self, x, None if real is None else ops.swapaxes(real, 1, 2))
        return packing.pack(x, attention_mask)

    def compute_output_shape(
        self, x_shape: Shape, *others: Shape | None, **other_shapes: Shape | None
    ) -> Shape:
        """Returns the shape of the output, in which only the width may differ from that of `x`."""
        return (*x_shape[:-1], self.mixer.output_width(x_shape[-1]))

    def add_dense(self, name: str, units: int, width: int, bias: bool = True) -> None:
        """Adds a dense layer as an attribute.

        Args:
            name: Name of the attribute and of the layer.
            units: Number of output features.
            width: Number of input features.
            bias: Whether it has a bias.
        """
        layer = keras.layers.Dense(units, use_bias=bias, dtype=self.dtype_policy, name=name)
        layer.build((None, width))
        setattr(self, name, layer)

    def add_norm(self, name: str, width: int) -> None:
        """Adds a layer normalisation as an attribute.

        Args:
            name: Name of the attribute and of the layer.
            width: Number of features.
        """
        layer = LayerNorm().layer(self.dtype_policy, name)
        layer.build((None, width))
        setattr(self, name, layer)

    def add_matrix(self, name: str, shape: tuple[int, ...], initializer: Any) -> None:
        """Adds a variable as an attribute.

        Args:
            name: Name of the attribute and of the variable.
            shape: Its shape.
            initializer: An initializer of Keras, or its name.
        """
        variable = self.add_weight(shape=shape, initializer=initializer, name=name, autocast=False)
        setattr(self, name, variable)

    def project(self, layer: keras.Layer, x: Tensor) -> Tensor:
        """Returns the output of a dense layer for `[N, D]`."""
        return self.kernels.dense(layer, x)

    @property
    def state_dtype(self) -> str:
        """Dtype of the states, at least float32: a sum in 16 bits loses small changes."""
        return keras.backend.result_type(self.compute_dtype, "float32")

    def empty_cache(self, batch: int, length: int, width: int = 1) -> tuple[Tensor, ...]:
        """Returns the state before the first position.

        Args:
            batch: Number of sentences B, an integer or a scalar tensor.
            length: Number of positions; ignored, as states have no maximum length.
            width: Number of hypotheses per sentence N, a Python integer.

        Raises:
            ValueError: If the layer also reads later positions.
        """
        if not self.causal:
            raise ValueError(
                "`causal` must be true for a computation position by position: the layer also reads"
                f" later ones. Received by {self.name!r}: mixer={self.mixer!r}, causal=False."
            )
        shapes = self.mixer.state_shapes(self.widths["x"])
        return tuple(ops.zeros((batch, width, *shape), self.state_dtype) for shape in shapes)

    def extended_cache(self, cache: Any, length: int, width: int) -> tuple[Tensor, ...]:
        """Returns the state unchanged, as it has no maximum length."""
        return cache

    def read(self, x: Tensor, count: Tensor | None = None) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Returns the output of a call, and the state after its positions.

        Args:
            x: `[B, T, D]`, the first T positions.
            count: Number of positions that change the state, a scalar integer. `None`: all.

        Returns:
            The output `[B, T, D]`, and tensors `[B, 1, ...]`, the state that `step` would return.
        """
        if count is None:
            return self.mixer.read(self, x)
        real = ops.arange(ops.shape(x)[1], dtype="int32") < count  # [T]
        return self.mixer.read(self, x, ops.reshape(real, (1, -1, 1)))

    def recalled_cache(
        self, cache: tuple[Tensor, ...], state: tuple[Tensor, ...], unread: Tensor, width: int
    ) -> tuple[Tensor, ...]:
        """Returns the state that `read` has computed, for all hypotheses.

        Args:
            cache: The state so far.
            state: The state from `read`, tensors `[B, 1, ...]`.
            unread: Whether no `step` has followed the positions that were read; scalar boolean.
                Otherwise the state does not change.
            width: Number of hypotheses per sentence; ignored, as `cache` has it.
        """
        return tuple(
            ops.where(unread, ops.broadcast_to(new, ops.shape(old)), old)
            for new, old in zip(state, cache, strict=True)
        )

    def step(
        self, x: Tensor, cache: Any, index: Tensor, attention_mask: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Computes one further position.

        Args:
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`.
            cache: From `empty_cache` or the previous step. A search that reorders its hypotheses
                must reorder the states as well.
            index: Index of the position.
            attention_mask: Must be `None`: a state contains only the positions of its own
                hypothesis.

        Returns:
            The output `[B, N, D]` and the new cache.

        Raises:
            ValueError: If `attention_mask` is not `None`.
        """
        if attention_mask is not None:
            raise ValueError(
                f"`attention_mask` must be None in a step of {self.mixer!r}, whose state contains "
                f"only the positions of its own hypothesis. Received by {self.name!r}: "
                f"a mask {tuple(attention_mask.shape)}."
            )
        return self.mixer.step(self, x, cache, index)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "mixer": plain(self.mixer), "causal": self.causal}
