"""The pipeline of speech recognition."""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Beam, BestPath, Ensemble, Greedy, Prompted
from keras_transformer.decoding.predictor import Vocabulary
from keras_transformer.decoding.search import check_search
from keras_transformer.options import NOT_EXPORTED, OptionError
from keras_transformer.tasks.answering import Progress
from keras_transformer.tasks.pipeline import TextPipeline
from keras_transformer.tasks.signatures import Signature
from keras_transformer.tasks.single_pass.pipeline import SinglePass
from keras_transformer.tasks.speech_recognition import graphs, long_form, reading, speech_only
from keras_transformer.tasks.speech_recognition.any_length import AnyLength
from keras_transformer.tasks.speech_recognition.attempts import (
    WindowSearch,
    search_at,
    search_of_run,
)
from keras_transformer.tasks.speech_recognition.attention import SpeechAttention, speech_attention
from keras_transformer.tasks.speech_recognition.audio.log_mel import LogMel
from keras_transformer.tasks.speech_recognition.beginnings import Beginnings
from keras_transformer.tasks.speech_recognition.choices import Choices
from keras_transformer.tasks.speech_recognition.codec import SpeechCodec
from keras_transformer.tasks.speech_recognition.fallback import (
    Fallback,
    check_temperatures,
    seed_of,
)
from keras_transformer.tasks.speech_recognition.features import frames_of
from keras_transformer.tasks.speech_recognition.long_recordings import LongRecordings
from keras_transformer.tasks.speech_recognition.model import SpeechTransformer
from keras_transformer.tasks.speech_recognition.rescoring import log_probabilities as rescored
from keras_transformer.tasks.speech_recognition.signatures import FrameSignatures
from keras_transformer.tasks.speech_recognition.silence import NUMBERS, Silence
from keras_transformer.tasks.speech_recognition.speech_only import VoiceActivity
from keras_transformer.tasks.speech_recognition.stream import TranscriptStream
from keras_transformer.tasks.speech_recognition.transcript import Transcript
from keras_transformer.tasks.speech_recognition.words import graph as word_graph
from keras_transformer.tasks.speech_recognition.words import of_windows
from keras_transformer.tasks.strings import traced_once
from keras_transformer.tensors import Tensor
from keras_transformer.text.tokenizers import Tokenizer

Kind = TypeVar("Kind", bound="SpeechRecognizer")


class SpeechRecognizer(SinglePass, TextPipeline):
    """A trained `SpeechTransformer` that writes down speech, with its tokenizer.

    A recording longer than the model's `max_seconds` is read in several windows, see `windows`. If
    its language is to be detected, that of the first window counts.

    Args:
        model: A `SpeechTransformer`, or a list of several; see `Pipeline`.
        tokenizer: The `Tokenizer` of the model.
        max_length: Maximum length of an output in tokens, with those of the model's `prompt_ids`.
            `None`: the model's `max_length`.
        search: The default search: a `Greedy`, a `Beam`, or for a model that was trained with CTC a
            `BestPath`. `None`: greedy search. Its `max_length` counts the tokens after the prompt.
        language, task, timestamps: Defaults of the arguments of `transcribe`. `None`: those of the
            model.
        no_speech_threshold, log_probability_threshold, compression_ratio_threshold: See `Silence`,
            for models that compute the probability of silence, such as Whisper. `None`: those of
            the model.
        windows: `"overlap"`: windows of a long recording overlap, and their transcripts are joined
            where they agree. `"timestamps"`, for models with timestamps: a window begins where the
            last complete segment ended, see `ByTimestamps`. `"context"`: the same, and the model
            also reads the text of the windows before, if it has a `previous_id`. `None`:
            `"timestamps"` if the model has them.
        temperatures: Temperatures of further attempts at windows whose text is poor, see
            `Fallback`. Empty, as by default: there are none.
        words: Whether transcripts have `words` with their times, for models with
            `alignment_heads`. A long recording must then be read by timestamps. `None`: they have
            none.
        voice_activity: A `SileroVoiceActivity`, or another function from samples `[N]`, float32,
            and the sample rate to the intervals of speech: pairs of the first sample and the sample
            after the last one. The model reads the speech alone, joined to a shorter recording;
            all times are those of the whole recording. `None`: it reads everything.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's or the prompt has as many tokens; if the
            tokenizer or the search does not fit the model; or if the model does not have a
            language, a task, timestamps or a probability of silence.

    Example:
        from keras_transformer.pipelines import SpeechRecognizer
        SpeechRecognizer.from_run("runs/morse_demo")(["message.wav"])
    """

    task = "speech_recognition"
    model_class = SpeechTransformer
    request = ("recordings",)
    output = "transcript"
    codec_class = SpeechCodec
    search = Greedy()

    def __init__(
        self,
        model: keras.Model | Sequence[keras.Model],
        tokenizer: Tokenizer | tuple[Tokenizer, Tokenizer],
        max_length: int | None = None,
        search: Greedy | Beam | BestPath | None = None,
        language: str | None = None,
        task: str | None = None,
        timestamps: bool | None = None,
        no_speech_threshold: float | None = None,
        log_probability_threshold: float | None = None,
        compression_ratio_threshold: float | None = None,
        windows: str | None = None,
        temperatures: Sequence[float] | None = None,
        words: bool | None = None,
        voice_activity: VoiceActivity | None = None,
    ):
        super().__init__(model, tokenizer, max_length)
        config = self.model.config
        own = Choices.of(config, self.target_tokenizer)
        choices = own.replaced(language=language, task=task, timestamps=timestamps)
        self._is_own = choices == own
        _check_limit(self.max_length, choices.longest_prompt)
        silence = Silence.of(
            config,
            no_speech_threshold=no_speech_threshold,
            log_probability_threshold=log_probability_threshold,
            compression_ratio_threshold=compression_ratio_threshold,
        )
        model_and_limit = config.input, self.tokenizers, self.max_length
        beginnings = Beginnings.of(config) if long_form.has_timestamps(config) else None
        self.codec = SpeechCodec.of(*model_and_limit, choices, silence, beginnings)
        self.windows = long_form.checked(windows, config)
        self.codec.reading = AnyLength(self.windows)
        self.words = long_form.checked_words(bool(words), self.windows, config)
        self.fallback = Fallback(silence, check_temperatures(temperatures or ()))
        if self.fallback.temperatures and silence is None:
            raise ValueError(
                "`temperatures` must be empty for a model that does not compute the probability of "
                f"silence (`no_speech_id`). Received: temperatures={temperatures}."
            )
        self.voice_activity = speech_only.checked_detector(voice_activity)
        self.check_models()
        if self.words:
            self.require_one("have no attention weights in common")
        if search is not None:
            check_search(search, Greedy, Beam, BestPath)
            search.check(Vocabulary.of(config), self.max_length, 1)
            self.search = search
        ensemble = Ensemble(self.models) if len(self.models) > 1 else None
        self._ensemble = lambda: ensemble  # hidden from `tf.Module`, which would track it
        self._transcriber = traced_once(functools.partial(graphs.of_samples, self))
        self.of_frames = traced_once(functools.partial(graphs.of_frames, self))
        self.of_words = traced_once(functools.partial(word_graph, self))

    @classmethod
    def with_files_of(cls: type[Kind], run: Any, model: Any, max_length: int | None = None) -> Kind:  # noqa: D102
        return cls(model, run.load_tokenizers_of(model), max_length, search=run.read_search())

    @classmethod
    def of_checkpoint(cls: type[Kind], checkpoint: Any, max_length: int | None = None) -> Kind:  # noqa: D102
        return cls(checkpoint.model, checkpoint.tokenizers, max_length, search=checkpoint.search)

    def with_model(self: Kind, model: Any) -> Kind:  # noqa: D102
        return self._with(model=model)

    def with_search(self: Kind, search: Any) -> Kind:
        """Returns a pipeline that differs in its search.

        Pipelines that differ in numbers of a search or in settings share their graphs.
        """
        return self._with(search=search)

    def with_settings(self: Kind, **settings: Any) -> Kind:
        """Returns a pipeline that differs in some of its `settings`; see the arguments.

        Raises:
            TypeError, ValueError: If the model does not have a choice or a value.
        """
        own = {name: value for name, value in settings.items() if name not in self._own_settings}
        self.codec.changed(**own)  # raises the error
        return self._with(**settings)

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the settings of answers, which depend on the model."""
        return (*self.codec.settings, *self._own_settings)

    @property
    def _own_settings(self):
        """Names of the settings that the codec does not have."""
        config = self.model.config
        has = {
            "windows": long_form.has_timestamps(config),
            "temperatures": self.codec.silence is not None,
            "words": long_form.has_words(config),
            "voice_activity": True,
        }
        return tuple(name for name in has if has[name])

    @property
    def accepts(self) -> tuple[str, ...]:  # noqa: D102
        return ("search", *super().accepts)

    def _with(self, **changes):
        choices = self.codec.choices
        model = self.model if len(self.models) == 1 else list(self.models)
        own = {"model": model, "tokenizer": self.tokenizers, "max_length": self.max_length}
        chosen = {name: getattr(choices, name) for name in choices.names}
        chosen |= self.thresholds()
        chosen |= {"windows": self.windows, "temperatures": self.fallback.temperatures}
        chosen |= {"words": self.words, "voice_activity": self.voice_activity}
        other = type(self)(**{**own, "search": self.search, **chosen, **changes})
        if "model" not in changes:  # all that differs is an input of the graphs
            other._transcriber = self._transcriber
            other.of_frames, other.of_words = self.of_frames, self.of_words
        return other

    def thresholds(self) -> dict[str, float]:
        """Returns the thresholds of the `Silence` by name; none for a model without one."""
        silence = self.codec.silence
        return {} if silence is None else dataclasses.asdict(silence)

    @property
    def searched(self) -> Any:
        """The model that searches are called with, or the `Ensemble` of several models."""
        return self.model if self._ensemble() is None else self._ensemble()

    @property
    def reads_text(self) -> bool:
        """`False`: it writes texts."""
        return False

    @property
    def sample_rate(self) -> int:
        """Samples per second of the recordings that the model reads."""
        return self.model.config.input.sample_rate

    def check_samples(self, samples: Sequence[Any]) -> list:
        """Returns the recordings to check an export with, a list; see `SpeechCodec.exported`.

        Raises:
            OptionError: If the recognizer has a setting that an export does not hold.
        """
        own = {"temperatures": self.fallback.temperatures, "words": self.words}
        own["voice_activity"] = self.voice_activity
        detector = "it holds no detector. Give one to the opened export"
        for name, reason in {**NOT_EXPORTED, "voice_activity": detector}.items():
            if own[name] not in (None, False, ()):
                raise OptionError(
                    name,
                    f"has no effect on an export: {reason}. Received: {name}={own[name]!r}.",
                )
        numbered = enumerate(super().check_samples(samples), start=1)
        return [self.codec.exported(one, f"recording {number}") for number, one in numbered]

    @property
    def features(self) -> LogMel:
        """The `LogMel` that computes the frames of the model."""
        return LogMel(**self.model.config.input.features)

    def attention(self, recording: Any) -> dict[str, SpeechAttention]:
        """Returns the attention weights of the decoder to a recording, for each word.

        Args:
            recording: A path, the bytes of a file, or an array of samples; see `transcribe`. A
                recording longer than the model's `max_seconds` is truncated.

        Returns:
            Dictionary from `"sound"` to a `SpeechAttention` with all layers and heads.

        Raises:
            TypeError: If samples have another dtype.
            ValueError: If the recording cannot be read, its transcript has no words, or the
                pipeline is an ensemble.
        """
        self.require_one("have no attention weights in common")
        attention = speech_attention(self, recording)
        return {attention.kind: attention}

    def log_probabilities(self, example: Any, results: list) -> np.ndarray | None:
        """Returns the mean log-probability of a token of given `Transcript`s of a recording.

        It is `None` with `BestPath`, which does not generate token by token, and if one of the
        transcripts is empty because it counts as silence: the search did not choose its end.
        """
        if isinstance(self.search, BestPath) or any(map(self._is_silent, results)):
            return None
        return rescored(self, example, results)

    def _is_silent(self, result):
        silence = self.codec.silence
        numbers = {name: [getattr(result, name)] for name in NUMBERS}
        return silence is not None and not result.transcript and bool(silence.holds(numbers)[0])

    def signatures(self) -> list[Signature]:
        """Returns the signatures of `SinglePass`, and those of frames for long recordings."""
        signatures = super().signatures()
        if self.codec.beginnings is None:
            return signatures
        of_windows = FrameSignatures(self)
        return [*signatures, of_windows.of_frames(), of_windows.of_either()]

    def predict(
        self, samples: Tensor, lengths: Tensor, search: Any = None, **choices: Tensor
    ) -> dict[str, Tensor]:
        """Returns the tokens that the search finds, in a graph; see `SpeechCodec.outputs`.

        Args:
            samples, lengths: See `SpeechCodec`.
            search: A search. `None`: that of the pipeline.
            **choices: The numbers of all `Choices`. Without them, outputs begin with the model's
                own prompt, for which the graph is smaller.
        """
        inputs = frames_of(self.model.config.input, samples, lengths)
        if choices:
            inputs = Prompted(inputs, self.codec.choices.prompts(**choices))
        return graphs.outputs_of(self, inputs, self.search if search is None else search)

    def respond(self, **request: Tensor) -> dict[str, Tensor]:  # noqa: D102
        inputs, rest = self.codec.encode(**request)
        if self._is_own and {*request} == {*self.request}:
            inputs = {name: inputs[name] for name in graphs.SOUND}
        return self.codec.answers(self.predict(**inputs), rest)

    def transcribe(
        self,
        recordings: Sequence[Any],
        batch_size: int = 64,
        language: str | Sequence[str | None] | None = None,
        task: str | Sequence[str | None] | None = None,
        timestamps: bool | Sequence[bool | None] | None = None,
    ) -> list[Transcript]:
        """Returns a `Transcript` for each recording of a list.

        Args:
            recordings: List of paths of WAV files, of the bytes of such files, or of arrays of
                samples `[N]` at the model's sample rate: floating from -1 to 1, or int16.
            batch_size: Maximum number of windows computed at a time. A batch has at most two
                minutes of sound, or one window.
            language: Code or English name of the language of all recordings, or a list with one for
                each. `"auto"`: the model detects it.
            task: `"transcribe"`, or `"translate"` to English; or a list.
            timestamps: Whether transcripts have `segments` with their times; or a list.

        For each of these three, `None` is the default of the recognizer. Models for one language
        refuse languages and tasks.

        Raises:
            TypeError: If `recordings` is not a list, or samples have another dtype.
            ValueError: If a recording cannot be read; the error names it. If the model does not
                have a language, a task or timestamps, or a list has another length.
        """
        recordings = self.codec.check(recordings)
        chosen = {"language": language, "task": task, "timestamps": timestamps}
        chosen = {name: value for name, value in chosen.items() if value is not None}
        choices = {}
        if chosen or not self._is_own:
            choices = self.codec.choices.rows(len(recordings), **chosen)
        results = []
        for group in self.in_groups(recordings):
            own = slice(len(results), len(results) + len(group))
            rows = {name: values[own] for name, values in choices.items()}
            results += self._of_group(group, rows, batch_size)
            del group  # before the next one is read
        return results

    def _of_group(self, recordings, choices, batch_size):
        """Returns a `Transcript` for each array of samples; see `LongForm`."""
        words = functools.partial(of_windows, self) if self.words else None
        search = None
        if self.codec.beginnings is not None:
            search = WindowSearch(self.codec, search_of_run(self))
        how = self._long_recordings, search, self.fallback, words
        plan = long_form.LongForm(self.codec, self.windows, *how)

        def read(recordings, choices):
            return plan(recordings, choices, batch_size)

        if self.voice_activity is None:
            return read(recordings, choices)
        gate = self.voice_activity, self.codec
        return speech_only.transcripts(*gate, recordings, choices, read)

    def in_groups(self, recordings: list) -> Iterator[list[np.ndarray]]:
        """Yields lists of the samples of recordings, in order, each of about an hour of sound.

        Args:
            recordings: See `transcribe`.

        Raises:
            TypeError, ValueError: See `transcribe`; all recordings are read before the first list.
        """
        most = reading.HELD_SECONDS * self.sample_rate
        return reading.in_groups(recordings, self.codec.read, most)

    def answer(
        self,
        inputs: Any,
        search: Any = None,
        batch_size: int = 64,
        progress: Progress = None,
        **choices: Any,
    ) -> Any:
        """Returns the `Transcript` of one recording, or a list for a list; see `transcribe`.

        Args:
            inputs: A recording, or a list of recordings.
            search, batch_size, progress: See `Answering.answer`.
            **choices: `language`, `task` and `timestamps`; see `transcribe`.
        """
        other = self if search is None else self.with_search(search)
        one = self.is_one(inputs)
        results = other.transcribe([inputs] if one else inputs, batch_size, **choices)
        if progress is not None:
            progress(len(results))
        return results[0] if one else results

    def answer_batch(self, examples: Sequence[Any]) -> list[Transcript]:
        """Returns a `Transcript` for each recording of a list, as few batches as possible."""
        return self.transcribe(examples, max(1, len(examples)))

    def stream(self) -> TranscriptStream:
        """Returns a `TranscriptStream` for a recording that arrives piece by piece."""
        return TranscriptStream(self)

    @property
    def window(self) -> tuple[int, int]:
        """Length and overlap of the windows of a long recording, in samples."""
        return self._long_recordings.window

    @property
    def _long_recordings(self):
        return LongRecordings(self.model.config.input, self.codec.choices, self._of_batch)

    def _of_batch(self, rows, choices):
        """Returns a `Transcript` for each of a list of windows; see `LongRecordings`."""

        def attempt(temperature, numbers):
            of_rows = {name: values[[*numbers]] for name, values in choices.items()}
            return self._attempt([rows[number] for number in numbers], of_rows, temperature)

        return self.fallback(attempt, len(rows))

    def _attempt(self, rows, choices, temperature):
        inputs, rest = self.codec.tensors(rows, choices)
        search = search_at(self.search, temperature)
        seeds = [seed_of(row) for row in rows] if temperature else range(len(rows))
        inputs |= graphs.search_inputs(search, seeds)
        numbers = self.thresholds().items()
        inputs |= {name: tf.constant(value, tf.float32) for name, value in numbers}
        answers = self._transcriber(search.kind, *choices)(**inputs)
        answers = {**answers, "truncated": rest["truncated"]}
        results = self.codec.results({name: value.numpy() for name, value in answers.items()})
        return [dataclasses.replace(one, temperature=temperature) for one in results]


def _check_limit(max_length, prompt):
    """Raises a `ValueError` if outputs would end within the prompt, whose length is given."""
    if max_length is not None and max_length <= prompt:
        raise ValueError(
            f"`max_length` must be above {prompt}, the number of tokens of the model's prompt, "
            f"with which every output begins. Received: max_length={max_length}."
        )
