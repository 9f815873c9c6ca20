"""Configuration of the head that predicts masked tokens, and of the masks in training."""

import dataclasses
from typing import Annotated, Any

from keras_transformer.arguments import documented, option
from keras_transformer.checks import check_rate, check_share
from keras_transformer.config.heads.linear import LinearHeadConfig
from keras_transformer.config.heads.next_token import NextTokenHead

# Options that determine the masks of training and evaluation, but neither weights nor answers.
MASKING = ("masking_rate", "mask_share", "random_share", "whole_word_masking")


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedTokenHead(LinearHeadConfig, NextTokenHead):
    """Configuration of a head that predicts the tokens that masks hide.

    Args:
        **options: See `help(MaskedTokenHead)`.
    """

    output_bias: bool = option(True, "Adds a bias to the logits, as in BERT.")
    transform: bool = option(
        True,
        """Adds a dense layer with `transform_activation` and a normalisation before the output
        weights, as in BERT. Its output is as wide as the embedding.""",
    )
    masking_rate: Annotated[float, check_rate] = option(
        0.15,
        """Share of the tokens of a text that training hides and predicts, above 0; at least one
        token of each text is.""",
    )
    mask_share: Annotated[float, check_share] = option(
        0.8,
        """Share of the hidden tokens that become the mask token (section 3.1 of Devlin et al.,
        2019).""",
    )
    random_share: Annotated[float, check_share] = option(
        0.1,
        """Share of the hidden tokens that become another token, drawn at random. The rest stay as
        they are.""",
    )
    whole_word_masking: bool = option(
        False,
        """Hides all tokens of a word together, as in BERT's whole word masking. The number of
        hidden tokens is the same on average; a text of few words may have none.""",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.masking_rate > 0:
            raise ValueError(
                f"`masking_rate` must be above 0. Received: masking_rate={self.masking_rate}."
            )
        shares = self.mask_share, self.random_share
        if sum(shares) > 1 + 1e-9:  # the sum may be rounded
            raise ValueError(
                "The sum of `mask_share` and `random_share` must be at most 1. "
                f"Received: mask_share={shares[0]}, random_share={shares[1]}."
            )

    def check_with(self, config: Any) -> None:  # noqa: D102
        if config.input.embedding_size is not None and self.is_tied and not self.transform:
            raise ValueError(
                "`embedding_size` needs `transform` or `tie='none'`: the output weights are as "
                "wide as the embedding. "
                f"Received: embedding_size={config.input.embedding_size}."
            )
