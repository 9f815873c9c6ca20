"""Configurations of a `MaskedLanguageModel`: its head with its masks, and the whole model."""

import dataclasses
from typing import Annotated

from keras_transformer.arguments import documented, option
from keras_transformer.checks import check_rate, check_share
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part
from keras_transformer.config.stack import ENCODER
from keras_transformer.config.tokens import TokenInput
from keras_transformer.config.vocabulary_head import VocabularyHead


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedTokenHead(VocabularyHead):
    """Configuration of a head that predicts the tokens that masks hide.

    Args:
        **options: See `help(MaskedTokenHead)`.
    """

    masking_rate: Annotated[float, check_rate] = option(
        0.15,
        """Share of the tokens of a text that training hides and predicts, above 0. At least one
        token of each text is hidden.""",
        statistic=True,
    )
    mask_share: Annotated[float, check_share] = option(
        0.8,
        """Share of the hidden tokens that become the mask token (section 3.1 of Devlin et al.,
        2019).""",
        statistic=True,
    )
    random_share: Annotated[float, check_share] = option(
        0.1,
        """Share of the hidden tokens that are replaced by a random token. All other hidden tokens
        remain unchanged.""",
        statistic=True,
    )
    whole_word_masking: bool = option(
        False,
        """Hides all tokens of a word together, as in BERT's whole word masking. The number of
        hidden tokens is the same on average. A text of few words may have no hidden tokens.""",
        statistic=True,
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


class MaskedLanguageModelConfig(ModelConfig):
    """Configuration of a `MaskedLanguageModel`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `MaskedTokenHead`.

    Example:
        >>> from keras_transformer.models import MaskedLanguageModelConfig
        >>> MaskedLanguageModelConfig.preset("tiny", vocab_size=4000).head.masking_rate
        0.15
    """

    description = {
        "input": Part(TokenInput()),
        "encoder": ENCODER,
        "head": Part(MaskedTokenHead()),
    }
