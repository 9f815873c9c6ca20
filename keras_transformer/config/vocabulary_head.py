"""Configuration of a head with logits of the vocabulary at each position of a text."""

import dataclasses
from typing import Any

from keras_transformer.arguments import documented, option
from keras_transformer.config.label_heads import LinearHeadConfig
from keras_transformer.config.tokens import NextTokenHead


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyHead(LinearHeadConfig, NextTokenHead):
    """Configuration of a head that predicts logits of the vocabulary, as BERT's for masked tokens.

    Args:
        **options: See `help(VocabularyHead)`.
    """

    output_bias: bool = option(True, "Adds a bias to the logits, as in BERT.")
    transform: bool = option(
        True,
        """Adds a dense layer with `transform_activation` and a normalisation before the output
        weights, as in BERT. Its output is as wide as the embedding.""",
    )

    def check_with(self, config: Any) -> None:  # noqa: D102
        super().check_with(config)
        if config.input.embedding_size is not None and self.is_tied and not self.transform:
            raise ValueError(
                "`embedding_size` needs `transform` or `tie='none'`: the output weights are as "
                "wide as the embedding. "
                f"Received: embedding_size={config.input.embedding_size}."
            )
