"""Configuration of a head that predicts the tokens of a transcript, and of its searches."""

import dataclasses
from typing import ClassVar

from keras_transformer.arguments import documented
from keras_transformer.config.heads.output import OutputHead
from keras_transformer.config.rules import THRESHOLDS
from keras_transformer.config.vocabulary import VocabularyOptions


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class TranscriptHead(OutputHead, VocabularyOptions):
    """Configuration of a head that predicts the next token of a text whose source is no text.

    Args:
        **options: See `help(TranscriptHead)`.
    """

    accepted: ClassVar[tuple] = (
        *OutputHead.accepted,
        *("prompt_ids", "first_silent_ids", "timestamp_id", "max_first_timestamp"),
        *("no_timestamps_id", "language_ids", "task_ids", "detect_language", "no_speech_id"),
        *THRESHOLDS,
    )
