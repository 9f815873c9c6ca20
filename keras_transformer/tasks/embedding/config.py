"""Configurations of a `TextEmbedder`: its head and the whole model."""

import dataclasses
from typing import Any

from keras_transformer.arguments import documented, option
from keras_transformer.checks import OptionalCount
from keras_transformer.config.label_heads import POOLING, Pooling
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part, PartConfig
from keras_transformer.config.stack import ENCODER
from keras_transformer.config.tokens import OptionalNumber, TokenInput


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorHead(PartConfig):
    """Configuration of a head that represents a whole text by one vector.

    Args:
        **options: See `help(VectorHead)`.
    """

    pooling: Pooling = option(*POOLING)
    dimensions: OptionalCount = option(
        None,
        """Number of features of a vector: the first ones of `d_model`, which are scaled to unit
        length afterwards (Kusupati et al., 2022). `None`: all.""",
    )
    normalize: bool = option(
        True,
        """Scales vectors to unit length, so that their dot products are cosines.""",
    )
    similarity_scale: OptionalNumber = option(
        None,
        """Factor on the similarities of texts in the loss, the inverse of a temperature. `None`: 20
        with `normalize`, otherwise 1.""",
    )
    symmetric: bool = option(
        False,
        """Compares, in the loss, also each second text with all first texts of its batch, as in
        CLIP (Radford et al., 2021), instead of each first text with all second texts only.""",
    )

    @property
    def scale(self) -> float:
        """Factor on the similarities of texts in the loss."""
        default = 20.0 if self.normalize else 1.0
        return default if self.similarity_scale is None else self.similarity_scale

    def check_with(self, config: Any) -> None:  # noqa: D102
        width = config.encoder.d_model
        if self.dimensions is not None and self.dimensions > width:
            raise ValueError(
                "`dimensions` must not exceed `d_model`, the width of the encoder. "
                f"Received: dimensions={self.dimensions}, d_model={width}."
            )


class EmbedderConfig(ModelConfig):
    """Configuration of a `TextEmbedder`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `VectorHead`.

    Example:
        >>> from keras_transformer.models import EmbedderConfig
        >>> EmbedderConfig.preset("tiny", vocab_size=4000, dimensions=64).head.pooling
        'mean'
    """

    description = {
        "input": Part(TokenInput()),
        "encoder": ENCODER,
        "head": Part(VectorHead()),
    }
