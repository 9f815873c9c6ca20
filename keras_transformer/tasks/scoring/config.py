"""Configurations of a `PairScorer`: its head and the whole model."""

import dataclasses
from typing import Literal

from keras_transformer.arguments import documented, option
from keras_transformer.config.label_heads import PooledHead
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part
from keras_transformer.config.stack import ENCODER
from keras_transformer.config.tokens import TokenInput


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreHead(PooledHead):
    """Configuration of a head that predicts one number for a pair of texts.

    Args:
        **options: See `help(ScoreHead)`.
    """

    score_activation: Literal["sigmoid", "none"] = option(
        "sigmoid",
        """Score of a pair: `"sigmoid"`, the sigmoid of the logit, a number from 0 to 1, or
        `"none"`, the logit itself. The sigmoid is trained with the binary cross-entropy, on scores
        from 0 to 1. The logit is trained with the squared error, on any numbers.""",
    )
    pair_layout: Literal["bert", "roberta"] = option(
        "bert",
        """Layout of a row: `"bert"`, `bos_id`, query, `eos_id`, passage, `eos_id`; or `"roberta"`,
        the same with two `eos_id` in the middle.""",
    )


class PairScorerConfig(ModelConfig):
    """Configuration of a `PairScorer`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `ScoreHead`. By
            default `segments` is `"after_eos"`.

    Example:
        >>> from keras_transformer.models import PairScorerConfig
        >>> PairScorerConfig.preset("tiny", vocab_size=4000).head.score_activation
        'sigmoid'
    """

    description = {
        "input": Part(TokenInput(segments="after_eos")),
        "encoder": ENCODER,
        "head": Part(ScoreHead()),
    }
