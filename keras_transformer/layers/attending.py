"""Base classes of layers that attend, and of blocks and stacks, which a configuration describes."""

from typing import Any, ClassVar

import keras

from keras_transformer.config.stack import StackConfig
from keras_transformer.layers.call_checks import (
    check_mask,
    check_mask_of_positions,
    check_positions,
    check_same_batch,
    warn_if_doubled,
)
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.kernels import PADDED
from keras_transformer.layers.masks import attached_mask, masks_fit
from keras_transformer.mixers import CrossAttention, short_options
from keras_transformer.positions.position import Position
from keras_transformer.tensors import Shape, Tensor
from keras_transformer.variants import plain


class AttendingLayer(CompositeLayer):
    """Base class of layers that attend from a sequence `x` to itself or to a `memory`.

    Masks that Keras attached to `x` and `memory` become the arguments `mask` and `memory_mask`,
    unless these are given. They are read before the layer is called, so they are part of a
    functional model's graph even if another layer later removes them from the tensors.
    """

    # For each mask, the argument that provides the keys. The queries always come from `x`.
    keys_of = {
        "attention_mask": "x",
        "memory_attention_mask": "memory",
        "mask": "x",
        "memory_mask": "memory",
    }
    # The layer to use instead of this one if there is no memory, for the error message.
    without_memory: str | None = None

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        """Checks the arguments of a call and returns its masks, including those of Keras."""
        positions = {name: given[name] for name in ("x", "memory") if given.get(name) is not None}
        for name, value in positions.items():
            check_positions(value, name, self, ndim=3)
        if "x" not in positions:
            return {}  # Keras reports the missing argument
        if "memory" in self.call_arguments() and "memory" not in positions:
            raise TypeError(
                "`memory`, the sequence that `x` attends to, must be given; without one, use "
                f"{self.without_memory}. Received by {self.name!r}: no memory."
            )
        if len(positions) == 2:
            check_same_batch(positions, self)
        # A stack checks its masks before it packs `x`, whose shape is then another one.
        is_packed = self.kernels.packing is not PADDED and masks_fit()
        masks = {}
        for name, keys in self.keys_of.items():
            mask = given.get(name)
            if mask is None and name in ("mask", "memory_mask"):
                mask = attached_mask(positions.get(keys))
            if mask is not None and name in self.call_arguments() and keys in positions:
                padding = (
                    ("mask" if keys == "x" else "memory_mask") if "attention" in name else None
                )
                arguments = mask, name, padding, positions["x"], positions[keys], self
                masks[name] = mask if is_packed else check_mask(*arguments)
        return masks

    def compute_output_shape(
        self, x_shape: Shape, *others: Shape | None, **other_shapes: Shape | None
    ) -> Shape:
        """Returns the shape of the output without attention weights, which is that of `x`."""
        return x_shape

    def compute_output_spec(
        self, x: Tensor, *arguments: Any, return_attention_scores: bool = False, **options: Any
    ) -> Any:
        """Returns the spec of the output, usually without a trace, in a third of the time."""
        if return_attention_scores:
            options["return_attention_scores"] = True
        if return_attention_scores or self.has_call_of_its_own():
            return keras.Operation.compute_output_spec(self, x, *arguments, **options)
        return keras.KerasTensor(self.compute_output_shape(x.shape), self.compute_dtype)

    def check_shapes(self, **shapes: tuple) -> None:
        """Requires input shapes `[B, T, D]` with a known D, and stores each D in `widths`."""
        for name, shape in shapes.items():
            if len(shape) != 3 or shape[-1] is None:
                raise ValueError(
                    f"`{name}` must be [batch, positions, features] with a known number of "
                    f"features. Received by {self.name!r}: shape={tuple(shape)}."
                )
        self.widths = {name: shape[-1] for name, shape in shapes.items()}


class ConfiguredLayer(AttendingLayer):
    """A block or a stack that a `StackConfig` describes.

    Attributes:
        config: The `StackConfig`.
        position: The `Position` of the self-attention of the block, or of the first one.
        causal: Whether each position attends only to itself and earlier positions.
        options: Names of the options that the constructor takes as keyword arguments.
    """

    config: StackConfig
    position: Position
    causal: bool = False
    options: ClassVar[tuple[str, ...]] = ()

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        if not self.config.attention_position.attends:  # otherwise two positions are intended
            warn_if_doubled(given.get("x"), self.position, self.name)
        if self.config.has_state:
            check_mask_of_positions(given.get("attention_mask"), "attention_mask", self)
        return super().checked_arguments(given)

    def _build(self, x_shape, memory_shape=None):
        raise NotImplementedError

    def _run(self, x, *arguments, **options):
        """Returns the output of `call`, whose arguments `EncoderCall` and `DecoderCall` define."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        flat = plain(self.config.to_flat())
        if not self.config.position.attends:
            flat["position"] = "none"  # in a model, the embedding adds it
        if self.config.has_state and "cross_attention" not in self.options:
            for name in short_options(CrossAttention):  # there is no attention
                del flat[name]
        own = {name: flat[name] for name in self.options if name in flat}
        own = {"num_heads": None, "d_ff": None, **own}
        return {**super().get_config(), **own}
