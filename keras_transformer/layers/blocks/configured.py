"""Base class of blocks and stacks, which a `StackConfig` describes."""

from typing import Any, ClassVar

from keras_transformer.config.stack import StackConfig
from keras_transformer.layers.attending import AttendingLayer
from keras_transformer.layers.call_checks import check_mask_of_positions
from keras_transformer.positions.doubled import warn_if_doubled
from keras_transformer.positions.position import Position
from keras_transformer.variants import plain


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
            check_mask_of_positions(given.get("allowed"), self)
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
        own = {"num_heads": None, **{name: flat[name] for name in self.options if name in flat}}
        return {**super().get_config(), **own}
