"""`VectorOptions`, what heads that represent an input by one vector have in common."""

import dataclasses
from typing import Any

from keras_transformer.arguments import option
from keras_transformer.checks import OptionalCount, OptionalNumber
from keras_transformer.config.parts import PartConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimilarityOptions(PartConfig):
    """Base class of configurations of heads whose outputs are compared by dot products."""

    similarity_scale: OptionalNumber = option(
        None,
        """Factor on the similarities in the loss, the inverse of a temperature. `None`: 20 for
        vectors of unit length, otherwise 1.""",
    )

    @property
    def scale(self) -> float:
        """Factor on the similarities in the loss."""
        return self.default_scale if self.similarity_scale is None else self.similarity_scale

    @property
    def default_scale(self) -> float:
        """The factor unless `similarity_scale` is set."""
        return 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextPairsOptions(SimilarityOptions):
    """Base class of configurations of heads that are trained on pairs of texts."""

    symmetric: bool = option(
        False,
        """The loss compares each first text with all second texts of its batch. If true, it also
        compares each second text with all first texts, as in CLIP (Radford et al., 2021).""",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorOptions(SimilarityOptions):
    """Base class of configurations of heads whose output is one vector."""

    dimensions: OptionalCount = option(
        None,
        """Number of features of a vector. The first features are kept, and then scaled to unit
        length (Kusupati et al., 2022). `None`: all.""",
    )
    normalize: bool = option(
        True,
        """Scales vectors to unit length, so that their dot products are cosines.""",
    )

    def width(self, d_model: int) -> int:
        """Returns the number of features of a vector, for `d_model` features of the encoder."""
        return self.dimensions or self.width_after_pooling(d_model)

    def width_after_pooling(self, d_model: int) -> int:
        """Returns the number of features that `dimensions` are the first of."""
        return d_model

    @property
    def before_dimensions(self) -> str:
        """Name, for messages, of the features that `dimensions` are the first of."""
        return "`d_model`"

    @property
    def default_scale(self) -> float:  # noqa: D102
        return 20.0 if self.normalize else 1.0

    def check_with(self, config: Any) -> None:  # noqa: D102
        width = self.width_after_pooling(config.encoder.d_model)
        if self.dimensions is not None and self.dimensions > width:
            name = self.before_dimensions
            raise ValueError(
                f"`dimensions` must not exceed {name}, the features of a vector. "
                f"Received: dimensions={self.dimensions}, where there are {width}."
            )
