"""Configuration of a head that predicts the tokens of an output, and of its searches."""

import dataclasses
from typing import ClassVar, Literal

from keras_transformer.arguments import documented, option
from keras_transformer.config.heads.generating import GeneratingHead


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class OutputHead(GeneratingHead):
    """Configuration of a head that predicts the tokens of an output, for which there is a source.

    Args:
        **options: See `help(OutputHead)`.
    """

    accepted: ClassVar[tuple] = (
        *GeneratingHead.accepted,
        *("banned_ids", "silent_ids", "forced_bos_id", "forced_eos_id", "no_repeat_ngram"),
    )

    decoder_start: Literal["token", "zeros"] = option(
        "token",
        """First input of the decoder: `"token"`, the embedding of `bos_id`, or `"zeros"`, zeros in
        its place, as in Marian's models. A position is added to both.""",
    )

    @property
    def starts_with_zeros(self) -> bool:
        """`True` if the first input of the decoder is zeros instead of an embedding."""
        return self.decoder_start == "zeros"
