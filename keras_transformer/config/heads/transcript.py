"""Configuration of a head that predicts the tokens of a transcript, and of its searches."""

import dataclasses
import functools
from typing import Annotated, Any

from keras_transformer.checks import (
    check_count,
    check_finite,
    check_positive,
    check_share,
    is_integer,
)
from keras_transformer.config.arguments import documented, option
from keras_transformer.config.heads.output import OutputHead
from keras_transformer.config.vocabulary import VocabularyOptions

LISTS = ("prompt_ids", "first_silent_ids", "language_ids", "task_ids")
Probability = Annotated[float, check_share]
Finite = Annotated[float, check_finite]
Positive = Annotated[float, check_positive]
OptionalNumber = Annotated[int | None, functools.partial(check_count, least=0, optional=True)]


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
    first_silent_ids: tuple = option(
        (),
        """Token ids that no search emits at the first position after the prompt, but which keep
        their probability there. They may contain `eos_id`: outputs are then not empty.""",
        set_by="vocabulary",
    )
    timestamp_id: int | None = option(
        None,
        """First token id of the timestamps in outputs, which are the last ids of the vocabulary;
        searches then emit them in pairs and in order, as in Whisper, unless the prompt contains
        `no_timestamps_id`. `None`: there are no such rules.""",
        set_by="vocabulary",
    )
    max_first_timestamp: OptionalNumber = option(
        None,
        """Largest number of the first timestamp of an output, counted from 0. `None`: any.""",
        set_by="vocabulary",
    )

    no_timestamps_id: OptionalNumber = option(
        None,
        """Token id at the end of a prompt whose output has no timestamps. `None`: whether outputs
        have timestamps is not a choice.""",
        set_by="vocabulary",
    )
    language_ids: tuple = option(
        (),
        """Token ids of the languages of recordings, one of which begins a prompt. Empty: the
        language is not a choice.""",
        set_by="vocabulary",
    )
    task_ids: tuple = option(
        (),
        """Token ids of the tasks, such as transcription and translation, one of which is in a
        prompt. Empty: the task is not a choice.""",
        set_by="vocabulary",
    )
    detect_language: bool = option(
        False,
        """Whether the most probable one of `language_ids` replaces the language in `prompt_ids`,
        for every recording.""",
        set_by="vocabulary",
    )
    no_speech_id: OptionalNumber = option(
        None,
        """Token id whose probability at the first position is that of a recording without speech,
        as in Whisper. `None`: the model does not compute it.""",
        set_by="vocabulary",
    )
    no_speech_threshold: Probability = option(
        0.6,
        """With `no_speech_id`: probability of no speech above which a recording has an empty
        transcript, if the output is also improbable. 1: never.""",
        set_by="vocabulary",
    )
    log_probability_threshold: Finite = option(
        -1.0,
        """With `no_speech_id`: mean log-probability of a token, in nats, below which an output is
        improbable.""",
        set_by="vocabulary",
    )
    compression_ratio_threshold: Positive = option(
        2.4,
        """With `no_speech_id`: ratio of the bytes of a text to those of the text compressed by
        zlib, above which it repeats itself and is reported.""",
        set_by="vocabulary",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in LISTS:
            object.__setattr__(self, name, tuple(getattr(self, name)))  # a list in JSON

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
        self._check_choices()
        self._check_after_prompt()

    def _check_choices(self):
        """Checks the tokens that may replace others in the prompt."""
        size, prompt = self.vocab_size, self.prompt_ids
        for name in ("first_silent_ids", "language_ids", "task_ids"):
            ids = getattr(self, name)
            if not all(is_integer(token) and 0 <= token < size for token in ids):
                raise ValueError(
                    f"`{name}` must be ids of the {size} tokens. Received: {name}={ids}."
                )
        if self.language_ids and (not prompt or prompt[0] not in self.language_ids):
            raise ValueError(
                "`prompt_ids` must begin with one of `language_ids`. "
                f"Received: prompt_ids={prompt}, language_ids={self.language_ids}."
            )
        if self.task_ids and len({*prompt[1:]} & {*self.task_ids}) != 1:
            raise ValueError(
                "`prompt_ids` must contain one of `task_ids` after the first token. "
                f"Received: prompt_ids={prompt}, task_ids={self.task_ids}."
            )
        silence = self.no_speech_id
        if silence is not None and silence >= size:
            raise ValueError(
                f"`no_speech_id` must be one of the {size} token ids. "
                f"Received: no_speech_id={silence}."
            )
        if self.detect_language and not self.language_ids:
            raise ValueError("`detect_language` has no effect without `language_ids`.")
        without = self.no_timestamps_id
        if without is not None and (
            self.timestamp_id is None or without >= size or without in prompt[:-1]
        ):
            raise ValueError(
                f"`no_timestamps_id` must be one of the {size} token ids, needs `timestamp_id`, "
                f"and comes last in `prompt_ids`. Received: no_timestamps_id={without}, "
                f"timestamp_id={self.timestamp_id}, prompt_ids={prompt}."
            )

    def _check_after_prompt(self):
        size, first = self.vocab_size, self.timestamp_id
        if first is None:
            if self.max_first_timestamp is not None:
                raise ValueError(
                    "`max_first_timestamp` has no effect without `timestamp_id`. "
                    f"Received: max_first_timestamp={self.max_first_timestamp}."
                )
        elif not is_integer(first) or not self.eos_id < first < size:
            raise ValueError(
                f"`timestamp_id` must be above `eos_id` and one of the {size} token ids. "
                f"Received: timestamp_id={first!r}, eos_id={self.eos_id}."
            )
