"""Configurations of a `SparseTextEmbedder`: its head and the whole model."""

import dataclasses
from typing import Annotated, Literal

from keras_transformer.arguments import documented, option
from keras_transformer.checks import Count, OptionalCount, check_not_negative
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part
from keras_transformer.config.stack import ENCODER
from keras_transformer.config.tokens import TokenInput
from keras_transformer.config.vectors import TextPairsOptions
from keras_transformer.config.vocabulary_head import VocabularyHead

Weight = Annotated[float, check_not_negative]


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class SparseVectorHead(TextPairsOptions, VocabularyHead):
    """Configuration of a head that gives each token of the vocabulary a weight for a whole text.

    Args:
        **options: See `help(SparseVectorHead)`.
    """

    pooling: Literal["max", "sum"] = option(
        "max",
        """Pooling over the tokens of a text: `"max"`, as in SPLADE v2 (Formal et al., 2021), or
        `"sum"`, as in the first version.""",
    )
    saturation: Literal["log", "double_log"] = option(
        "log",
        """Weight of a logit `x`: `"log"`, `log(1 + relu(x))`, or `"double_log"`,
        `log(1 + log(1 + relu(x)))`, as in models of OpenSearch.""",
    )
    max_active: Count = option(
        256,
        "Maximum number of tokens in a vector. The tokens with the largest weights are kept.",
        statistic=True,
    )
    query_flops: Weight = option(
        0.0005,
        """Factor in the loss of the first texts' FLOPS, `sum_v (mean_i w_iv)^2` (Paria et al.,
        2020): higher values lead to fewer tokens.""",
        statistic=True,
    )
    text_flops: Weight = option(
        0.0003, "Factor in the loss of the second texts' FLOPS.", statistic=True
    )
    flops_updates: OptionalCount = option(
        None,
        """Number of updates over which both factors grow from 0, with the square of the number of
        the update. `None`: a third of `training.updates`.""",
        statistic=True,
    )


class SparseEmbedderConfig(ModelConfig):
    """Configuration of a `SparseTextEmbedder`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `SparseVectorHead`.

    Example:
        >>> from keras_transformer.models import SparseEmbedderConfig
        >>> SparseEmbedderConfig.preset("tiny", vocab_size=4000).head.pooling
        'max'
    """

    description = {
        "input": Part(TokenInput()),
        "encoder": ENCODER,
        "head": Part(SparseVectorHead()),
    }
