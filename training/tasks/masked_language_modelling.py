"""Training of a masked language model."""

from collections.abc import Callable
from typing import Any

from keras_transformer.fields import Tokens
from keras_transformer.fields.field import Field
from keras_transformer.tasks.masked_language_modelling.masking import (
    hide_tokens,
    require_mask,
    require_words,
    seeds_from,
)
from keras_transformer.tensors import Tensor
from keras_transformer.training.tasks.task import TextTraining


class MaskedLanguageModellingTraining(TextTraining):
    """Training on texts with the smoothed cross-entropy of the tokens that masks hide.

    A batch is (tokens [B, S], labels [B, S]), int32: see `hide_tokens`. Each epoch of training
    hides different tokens, and every validation the same ones. Only labels that are not padding
    count.

    Raises:
        ValueError: If the vocabulary has no mask token, or words are to be hidden that its tokens
            do not show.
    """

    def __init__(self, tokenizer: Any, config: Any = None, packed: bool = False):
        super().__init__(tokenizer, config, packed)
        require_mask(self.tokenizers.source)
        if config is not None and config.head.whole_word_masking:
            require_words(self.tokenizers.source)

    @property
    def fields(self) -> dict[str, Field]:  # noqa: D102
        return {"text": Tokens(self.tokenizers.source)}

    def variation(
        self, settings: Any
    ) -> Callable[[Tensor, dict[str, Tensor]], dict[str, Tensor]] | None:
        """Returns a function that adds the `draws`, from which the masks of an epoch follow."""
        return lambda draws, columns: {**columns, "draws": draws}

    def assemble(self, text, draws=None) -> tuple:  # noqa: D102
        seeds = None if draws is None else seeds_from(draws)
        return tuple(hide_tokens(text, self.tokenizers.source, self.config, seeds))
