"""Configuration of tokens as the input of a model."""

import dataclasses
from typing import Any, Literal

from keras_transformer.arguments import documented, option
from keras_transformer.checks import OptionalCount
from keras_transformer.config.vocabulary import VocabularyOptions

# Options that only a text that is read has, not one that is generated.
GENERATED = ("segments", "embedding_size")


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenInput(VocabularyOptions):
    """Configuration of token ids and their embedding; in an encoder-decoder, of the source.

    Args:
        **options: See `help(TokenInput)`.
    """

    segments: Literal["none", "from_bos", "after_eos"] = option(
        "none",
        """Segment embeddings: one learned vector is added to the tokens of the first text and
        another one to the tokens of the second (Devlin et al., 2019). The second text begins at the
        first `bos_id`, `"from_bos"`, or after the first `eos_id`, `"after_eos"`. `"none"`: no
        segment embeddings.""",
    )

    embedding_size: OptionalCount = option(
        None,
        """Width of the embeddings, which are normalised and projected to `d_model`, as in ELECTRA
        and ALBERT. `None`: `d_model`, without a projection.""",
    )

    def check_with(self, config: Any) -> None:  # noqa: D102
        super().check_with(config)
        if self.embedding_size is not None and config.stacks[0].embedding_norm:
            raise ValueError(
                "`embedding_norm` must be false with `embedding_size`, which has a norm of its "
                "own before the projection."
            )
