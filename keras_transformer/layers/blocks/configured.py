"""Base class of blocks and stacks, which a `StackConfig` describes."""

from typing import Any, ClassVar

from keras_transformer.config.stack import StackConfig
from keras_transformer.layers.attending import AttendingLayer


class ConfiguredLayer(AttendingLayer):
    """A block or a stack that a `StackConfig` describes.

    Attributes:
        config: The `StackConfig`.
        causal: Whether each position attends only to itself and earlier positions.
        options: Names of the options that the constructor takes as keyword arguments.
    """

    config: StackConfig
    causal: bool = False
    options: ClassVar[tuple[str, ...]] = ()

    def _build(self, x_shape, memory_shape=None):
        raise NotImplementedError

    def _run(self, x, *arguments, **options):
        """Returns the output of `call`, whose arguments `EncoderCall` and `DecoderCall` define."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        flat = self.config.to_flat()
        return {**super().get_config(), **{name: flat[name] for name in self.options}}
