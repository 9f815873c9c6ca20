"""Configuration of a `LanguageModel`."""

from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part
from keras_transformer.config.stack import StackConfig
from keras_transformer.config.tokens import GENERATED, GeneratingHead, TokenInput


class LanguageModelConfig(ModelConfig):
    """Configuration of a `LanguageModel`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `GeneratingHead`.

    Example:
        >>> from keras_transformer.models import LanguageModelConfig
        >>> LanguageModelConfig.preset("tiny", vocab_size=4000).num_layers
        4
    """

    description = {
        "input": Part(TokenInput(), leave_out=GENERATED),
        "decoder": Part(StackConfig(), leave_out=("cross_attention",)),
        "head": Part(GeneratingHead()),
    }
