"""`OutputRules`: all rules for the outputs of a model, declared once."""

import dataclasses
import functools
import numbers
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from keras_transformer.arguments import documented, option, options_of
from keras_transformer.checks import (
    check_count,
    check_finite,
    check_positive,
    check_share,
    is_finite,
    is_integer,
)
from keras_transformer.config.parts import PartConfig
from keras_transformer.search_settings import LEAST_RATIO

# Rules for recordings whose outputs count as invented, which no search applies.
THRESHOLDS = ("no_speech_threshold", "log_probability_threshold", "compression_ratio_threshold")

Probability = Annotated[float, check_share]
Finite = Annotated[float, check_finite]
Positive = Annotated[float, check_positive]
OptionalNumber = Annotated[int | None, functools.partial(check_count, least=0, optional=True)]


def check_ratio(name: str, value: Any) -> None:
    """Requires a multiple of the length of a source, or `None`."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"`{name}` must be a number. Received: {name}={value!r}.")
    if not is_finite(value) or value < LEAST_RATIO:
        raise ValueError(
            f"`{name}` must be a finite number of at least {LEAST_RATIO}. Received: {name}={value}."
        )


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class OutputRules(PartConfig):
    """Rules for the outputs of a model that generates tokens.

    A run stores them in `generation.json`, the head of a model's configuration holds them, and the
    `Vocabulary` of a predictor hands them to every search. A kind of head accepts some of them.

    Args:
        **options: See `help(OutputRules)`.
    """

    start_id: int | None = option(
        None,
        """Token id that begins an output, as the `bos_id` of the model. `None`: the `bos_id` of the
        tokenizer.""",
        set_by="vocabulary",
    )
    end_ids: tuple = option(
        (),
        """Further token ids that end an output, such as the end of a turn in a conversation. The
        output contains `eos_id` in their place.""",
        set_by="vocabulary",
    )
    banned_ids: tuple = option(
        (),
        "Token ids that no search emits; the probabilities of the others sum to 1.",
        set_by="vocabulary",
    )
    suppressed_ids: tuple = option(
        (),
        "Token ids that no search emits, but which keep their probability.",
        set_by="vocabulary",
    )
    forced_bos_id: int | None = option(
        None,
        """Token id that a search emits at the first position of every output, as in BART. `None`:
        no token is forced there.""",
        set_by="vocabulary",
    )
    forced_eos_id: int | None = option(
        None,
        """Token id, usually `eos_id`, that a search emits at the last position of an output of
        maximum length. `None`: such an output has no end.""",
        set_by="vocabulary",
    )
    no_repeat_ngram: Annotated[int, functools.partial(check_count, least=0)] = option(
        0,
        "Number n of tokens: in an output of a search, no n-gram occurs twice. 0: any may.",
        set_by="vocabulary",
    )
    language_codes: Literal["none", "before", "after", "start"] = option(
        "none",
        """Tokens of languages in front of each source: that of the target language, then that of
        the source language. Each output begins with the first one. The encoder reads the second
        one before the text, `"before"`, as in M2M100, or after its end, `"after"`. `"start"`: as
        `"after"`, but the first one is not part of an output; it is the first input of the decoder
        in place of `bos_id`, as in the mBART of 25 languages. `"none"`: a source has no such
        tokens.""",
        set_by="vocabulary",
    )
    max_length_ratio: Annotated[float | None, check_ratio] = option(
        None,
        """Searches end an output that has this many times as many tokens as its source, rounded up,
        ends included, as Marian does by `max-length-factor`. The `max_length_ratio` of a search may
        be smaller. `None`: the length of the source does not limit outputs.""",
        set_by="vocabulary",
    )
    prompt_ids: tuple = option(
        (),
        """Token ids with which every output begins after `bos_id`, such as Whisper's tokens of the
        language and the task.""",
        set_by="vocabulary",
    )
    first_suppressed_ids: tuple = option(
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
        """Replaces the language in `prompt_ids` by the most probable one of `language_ids`, for
        every recording.""",
        set_by="vocabulary",
    )
    no_speech_id: OptionalNumber = option(
        None,
        """Token id whose probability at the first position is that of a recording without speech,
        as in Whisper. `None`: the model does not compute it.""",
        set_by="vocabulary",
    )
    previous_id: OptionalNumber = option(
        None,
        """Token id with which the decoder begins in place of `bos_id` if the text before a
        recording is given, as in Whisper: the text and `bos_id` follow it. `None`: no text can be
        given.""",
        set_by="vocabulary",
    )
    alignment_heads: tuple = option(
        (),
        """Pairs of a layer and a head of the decoder, counted from 0, whose attention to a
        recording tells when a word is spoken, as in Whisper. Empty: words have no times.""",
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
        for name, field in options_of(type(self)).items():
            if field.default != ():
                continue
            ids = getattr(self, name)
            if not isinstance(ids, tuple | list):
                raise TypeError(f"`{name}` must be a list of ids. Received: {name}={ids!r}.")
            if name == "alignment_heads":
                ids = (tuple(pair) if isinstance(pair, list) else pair for pair in ids)
            object.__setattr__(self, name, tuple(ids))  # a list in JSON

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "OutputRules":
        """Returns the rules from a result of `to_dict`, also of runs with an earlier name."""
        names = {"length_factor": "max_length_ratio"}
        return super().from_dict({names.get(name, name): fields[name] for name in fields})

    def only(self, names: Iterable[str]) -> "OutputRules":
        """Returns the rules with these names; the others are at their defaults."""
        return type(self)(**{name: getattr(self, name) for name in names})

    @property
    def has_languages(self) -> bool:
        """`True` if sources begin with tokens of languages."""
        return self.language_codes != "none"

    @property
    def starts_with_language(self) -> bool:
        """`True` if the first input of the decoder is the token of the target's language."""
        return self.language_codes == "start"

    @property
    def forces_language(self) -> bool:
        """`True` if outputs begin with the token of their language."""
        return self.has_languages and not self.starts_with_language

    @property
    def beginning_length(self) -> int:
        """Number of tokens that every output begins with: a prompt, a forced token, a language."""
        forces = self.forced_bos_id is not None or self.forces_language
        return max(len(self.prompt_ids), int(forces))

    def check_with(self, config: Any) -> None:  # noqa: D102
        tokens, size = config.tokens, config.output_size
        self._check_ends(tokens, size)
        self._check_excluded(tokens, size)
        self._check_forced(tokens, size)
        self._check_prompt(tokens, config.decoder.max_length)
        self._check_choices(tokens)
        self._check_timestamps(tokens)
        self._check_heads(config)

    def _check_ends(self, tokens, size):
        ids = self.end_ids
        if not all(is_integer(token) and 0 <= token < size for token in ids):
            raise ValueError(f"`end_ids` must be ids of the {size} tokens. Received: {ids}.")
        if len({*ids}) < len(ids) or {tokens.pad_id, tokens.eos_id} & {*ids}:
            raise ValueError(
                "`end_ids` must be distinct, without `pad_id` and `eos_id`. Received: "
                f"end_ids={ids}, pad_id={tokens.pad_id}, eos_id={tokens.eos_id}."
            )

    def _check_excluded(self, tokens, size):
        for name in ("banned_ids", "suppressed_ids"):
            ids = getattr(self, name)
            if not all(is_integer(token) and 0 <= token < size for token in ids):
                raise ValueError(
                    f"`{name}` must be ids of the {size} target tokens. Received: {name}={ids}."
                )
            if tokens.eos_id in ids:
                raise ValueError(
                    f"`{name}` must not contain `eos_id`, or no output would end. "
                    f"Received: eos_id={tokens.eos_id}."
                )

    def _check_forced(self, tokens, size):
        for name in ("forced_bos_id", "forced_eos_id"):
            forced = getattr(self, name)
            if forced is None:
                continue
            if not is_integer(forced) or not 0 <= forced < size or forced == tokens.pad_id:
                raise ValueError(
                    f"`{name}` must be the id of one of the {size} target tokens except "
                    f"`pad_id`, or None. Received: {name}={forced!r}."
                )
            if forced in self.suppressed_ids or forced == tokens.bos_id != tokens.eos_id:
                raise ValueError(
                    f"`{name}` must be a token that a search may emit: neither `bos_id` nor one "
                    f"of `suppressed_ids`. Received: {name}={forced}."
                )
        if self.forced_bos_id is not None and self.has_languages:
            raise ValueError(
                "`forced_bos_id` must be None with `language_codes`, which force the first token "
                f"of an output. Received: forced_bos_id={self.forced_bos_id}."
            )

    def _check_prompt(self, tokens, max_length):
        size, ends = tokens.vocab_size, (tokens.pad_id, tokens.eos_id)
        if not all(
            is_integer(token) and 0 <= token < size and token not in ends
            for token in self.prompt_ids
        ):
            raise ValueError(
                f"`prompt_ids` must be ids of the {size} tokens except `pad_id` and "
                f"`eos_id`. Received: prompt_ids={self.prompt_ids}."
            )
        if len(self.prompt_ids) >= max_length:
            raise ValueError(
                "`prompt_ids` must be shorter than `max_length`. Received: "
                f"{len(self.prompt_ids)} ids, max_length={max_length}."
            )
        if self.prompt_ids and self.forced_bos_id is not None:
            raise ValueError(
                "`forced_bos_id` must be None with `prompt_ids`, which begin an output. "
                f"Received: forced_bos_id={self.forced_bos_id}."
            )

    def _check_choices(self, tokens):
        """Checks the tokens that may replace others in the prompt."""
        size, prompt = tokens.vocab_size, self.prompt_ids
        for name in ("first_suppressed_ids", "language_ids", "task_ids"):
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
        for name in ("no_speech_id", "previous_id"):
            token = getattr(self, name)
            if token is not None and token >= size:
                raise ValueError(
                    f"`{name}` must be one of the {size} token ids. Received: {name}={token}."
                )
        if self.detect_language and not self.language_ids:
            raise ValueError("`detect_language` has no effect without `language_ids`.")

    def _check_heads(self, config):
        if not self.alignment_heads:
            return
        layers, heads = config.decoder_layers, config.decoder.block.memory_attention.num_heads
        known = {(layer, head) for layer in range(layers) for head in range(heads)}
        if not {*self.alignment_heads} <= known:
            raise ValueError(
                f"`alignment_heads` must be pairs of one of {layers} layers and one of {heads} "
                f"heads. Received: alignment_heads={self.alignment_heads}."
            )

    def _check_timestamps(self, tokens):
        size, first, prompt = tokens.vocab_size, self.timestamp_id, self.prompt_ids
        without = self.no_timestamps_id
        if without is not None and (first is None or without >= size or without in prompt[:-1]):
            raise ValueError(
                f"`no_timestamps_id` must be one of the {size} token ids, needs `timestamp_id`, "
                f"and comes last in `prompt_ids`. Received: no_timestamps_id={without}, "
                f"timestamp_id={first}, prompt_ids={prompt}."
            )
        if first is None:
            if self.max_first_timestamp is not None:
                raise ValueError(
                    "`max_first_timestamp` has no effect without `timestamp_id`. "
                    f"Received: max_first_timestamp={self.max_first_timestamp}."
                )
        elif not is_integer(first) or not tokens.eos_id < first < size:
            raise ValueError(
                f"`timestamp_id` must be above `eos_id` and one of the {size} token ids. "
                f"Received: timestamp_id={first!r}, eos_id={tokens.eos_id}."
            )
