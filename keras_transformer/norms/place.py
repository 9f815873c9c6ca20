"""Places of the normalisations of a block as values."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from keras_transformer.arguments import option
from keras_transformer.variants import Variant, declared


class NormPlace(Variant):
    """Base class of the places of the normalisations of a block.

    Attributes:
        is_before: Whether the input of a sublayer is normalised, instead of the sum of its input
            and output.
    """

    option = "norm"
    is_before: ClassVar[bool]

    @property
    def first(self) -> bool:
        """`True` if the first sublayer of the first block has a normalisation."""
        return True

    def at(self, number: int) -> NormPlace:
        """Returns the place of the normalisations of one block of a stack.

        Args:
            number: Index of the block, counted from 0.
        """
        return self


@declared
class PostNorm(NormPlace):
    """`LayerNorm(x + Sublayer(x))`, as in the paper.

    Reference: Vaswani et al. (2017), section 3.1.
    """

    kind = "post"
    is_before = False


@declared
class PreNorm(NormPlace):
    """`x + Sublayer(LayerNorm(x))`, with one more normalisation after each stack.

    Args:
        **options: See `help(PreNorm)`.

    Reference: Xiong et al. (2020), "On Layer Normalization in the Transformer Architecture".
    """

    kind = "pre"
    is_before = True

    first: bool = option(
        True,
        """Normalises the input of the first sublayer in the first block. False in ModernBERT, where
        `embedding_norm` already normalises this input.""",
    )

    def at(self, number: int) -> PreNorm:  # noqa: D102
        return dataclasses.replace(self, first=self.first or number > 0)
