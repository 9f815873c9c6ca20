"""Configuration of a head that predicts the tokens of a transcript, and of its searches."""

import dataclasses
from typing import Any

from keras_transformer.checks import is_integer
from keras_transformer.config.arguments import documented, option
from keras_transformer.config.heads.output import OutputHead
from keras_transformer.config.vocabulary import VocabularyOptions


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class TranscriptHead(OutputHead, VocabularyOptions):
    """Configuration of a head that predicts the next token of a text whose source is no text.

    Args:
        **options: See `help(TranscriptHead)`.
    """

    prompt_ids: tuple = option(
        (),
        """Token ids with which every output begins after `bos_id`, such as Whisper's tokens of the
        language and the task.""",
        set_by="vocabulary",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "prompt_ids", tuple(self.prompt_ids))  # a list in JSON

    def check_with(self, config: Any) -> None:  # noqa: D102
        super().check_with(config)
        ends = (self.pad_id, self.eos_id)
        if not all(
            is_integer(token) and 0 <= token < self.vocab_size and token not in ends
            for token in self.prompt_ids
        ):
            raise ValueError(
                f"`prompt_ids` must be ids of the {self.vocab_size} tokens except `pad_id` and "
                f"`eos_id`. Received: prompt_ids={self.prompt_ids}."
            )
        if len(self.prompt_ids) >= config.decoder.max_length:
            raise ValueError(
                "`prompt_ids` must be shorter than `max_length`. Received: "
                f"{len(self.prompt_ids)} ids, max_length={config.decoder.max_length}."
            )
        if self.prompt_ids and self.forced_bos_id is not None:
            raise ValueError(
                "`forced_bos_id` must be None with `prompt_ids`, which begin an output. "
                f"Received: forced_bos_id={self.forced_bos_id}."
            )
