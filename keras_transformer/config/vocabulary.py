"""Options of a vocabulary: its size, its embedding and its special token ids."""

import dataclasses
import functools
from typing import Annotated, Any

from keras_transformer.arguments import documented, option
from keras_transformer.checks import Count, check_positive, is_integer
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
