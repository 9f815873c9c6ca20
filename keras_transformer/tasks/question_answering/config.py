"""Configurations of a `SpanPredictor`: its head and the whole model."""

import dataclasses
from typing import Literal

from keras_transformer.arguments import documented, option
from keras_transformer.checks import Count, OptionalCount
from keras_transformer.config.label_heads import LinearHeadConfig
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part
from keras_transformer.config.stack import ENCODER
from keras_transformer.config.tokens import TokenInput


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class SpansHead(LinearHeadConfig):
    """Configuration of a head that predicts the first and last token of an answer in a passage.

    Args:
        **options: See `help(SpansHead)`.
    """

    max_answer: Count = option(30, "Maximum length of an answer, in tokens.")
    stride: OptionalCount = option(
        None,
        """Number of tokens between the beginnings of two windows of a passage that is too long for
        the model. `None`: half of a window.""",
    )
    pair_layout: Literal["separator", "bert", "roberta"] = option(
        "separator",
        """Layout of a row: `"separator"`, question, `bos_id`, passage, `eos_id`; `"bert"`,
        `bos_id`, question, `eos_id`, passage, `eos_id`; or `"roberta"`, the same with two `eos_id`
        in the middle. In `"bert"` and `"roberta"`, passages are tokenised as a whole, as pretrained
        models require.""",
    )
    no_answer: bool = option(
        False,
        """Leaves an answer empty if the passage more probably contains no answer, as in SQuAD
        2.0.""",
    )


class SpanPredictorConfig(ModelConfig):
    """Configuration of a `SpanPredictor`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `SpansHead`. By
            default `segments` is `"from_bos"`.
    """

    description = {
        "input": Part(TokenInput(segments="from_bos")),
        "encoder": ENCODER,
        "head": Part(SpansHead()),
    }
