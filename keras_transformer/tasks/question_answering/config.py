"""Configuration of a head that predicts the first and last token of an answer."""

import dataclasses
from typing import Literal

from keras_transformer.arguments import documented, option
from keras_transformer.config.block import Count, OptionalCount
from keras_transformer.config.heads.linear import LinearHeadConfig


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
        in the middle. In the last two, passages are tokenised as a whole, as pretrained models
        need it.""",
    )
    no_answer: bool = option(
        False,
        """Leaves an answer empty if it is more probable that the passage has none, as in SQuAD
        2.0.""",
    )
