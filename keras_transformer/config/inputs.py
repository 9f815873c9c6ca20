"""Configuration of tokens as the input of a model."""

import dataclasses
import functools
from typing import Annotated, Any, Literal

from keras_transformer.arguments import documented, option
from keras_transformer.checks import Count, OptionalCount, check_positive, is_integer
from keras_transformer.config.part_config import PartConfig

OptionalNumber = Annotated[float | None, functools.partial(check_positive, optional=True)]


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyOptions(PartConfig):
    """Options of the part of a configuration that has the vocabulary; see `ModelConfig.tokens`.

    Args:
        **options: See `help(VocabularyOptions)`.
    """

    vocab_size: Count = option(
        37_000,
        "Size of the vocabulary, or of the source vocabulary if the target has its own.",
        set_by="vocabulary",
    )
    embedding_scale: OptionalNumber = option(
        None, "Factor of the embeddings. `None`: `sqrt(d_model)` (section 3.4)."
    )
    pad_id: int = option(
        0,
        "Token id of padding, to which no position attends.",
        set_by="vocabulary",
    )
    bos_id: int = option(2, "Token id that begins an output.", set_by="vocabulary")
    eos_id: int = option(3, "Token id that ends a text.", set_by="vocabulary")

    def check_with(self, config: Any) -> None:  # noqa: D102
        super().check_with(config)
        smallest = min(self.vocab_size, config.output_size)
        ids = (self.pad_id, self.bos_id, self.eos_id)
        exist = all(is_integer(token) and 0 <= token < smallest for token in ids)
        if not exist or self.pad_id == self.eos_id:
            raise ValueError(
                "`pad_id`, `bos_id` and `eos_id` must be in the vocabulary, and `pad_id` must "
                f"differ from `eos_id`. Received: pad_id={self.pad_id}, bos_id={self.bos_id}, "
                f"eos_id={self.eos_id}, vocabulary of {smallest}."
            )


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
