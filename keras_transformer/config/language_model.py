"""`LanguageModelConfig`, the configuration of a decoder without an encoder."""

import dataclasses
from typing import Literal

from keras_transformer.config.stack import StackConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class LanguageModelConfig(StackConfig):
    """Everything that decides the shape and the arithmetic of a `LanguageModel`.

    The arguments are those of `StackConfig` and of `BlockConfig`, and:

    Args:
        tie: Whether embedding and output weights are one matrix, `"all"` (section 3.4), or not,
            `"none"`.
        output_bias: Whether a bias is added to the logits. The paper's output weights have none.

    Example:
        >>> from keras_transformer import LanguageModelConfig
        >>> LanguageModelConfig.preset("tiny", vocab_size=4000).num_layers
        4
    """

    tie: Literal["all", "none"] = "all"
    output_bias: bool = False
