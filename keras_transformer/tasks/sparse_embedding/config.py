"""Configurations of a `SparseTextEmbedder`: its head and the whole model."""

import dataclasses
from typing import Annotated, Literal

from keras_transformer.arguments import documented, option
from keras_transformer.checks import Count, OptionalCount, OptionalNumber, check_not_negative
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part
from keras_transformer.config.stack import ENCODER
from keras_transformer.config.tokens import TokenInput
from keras_transformer.config.vocabulary_head import VocabularyHead

Weight = Annotated[float, check_not_negative]


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class SparseVectorHead(VocabularyHead):
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
        "Largest number of tokens in a vector: those with the largest weights.",
        statistic=True,
    )
    similarity_scale: OptionalNumber = option(
        None, "Factor on the similarities in the loss, the inverse of a temperature. `None`: 1."
    )
    symmetric: bool = option(
        False,
        """Compares, in the loss, also each second text with all first texts of its batch, instead
        of each first text with all second texts only.""",
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

    @property
    def scale(self) -> float:
        """Factor on the similarities in the loss."""
        return 1.0 if self.similarity_scale is None else self.similarity_scale


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
