"""The codec of speech recognition."""

import dataclasses
import os
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.checks import check_positive
from keras_transformer.decoding.hypotheses import NONE
from keras_transformer.tasks.results import COMPLETE
from keras_transformer.tasks.signatures import FRAMES
from keras_transformer.tasks.single_pass.codec import Codec
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.speech_recognition.any_length import AnyLength
from keras_transformer.tasks.speech_recognition.audio.files import SUFFIXES, read_audio
from keras_transformer.tasks.speech_recognition.audio.wav import decode_wav, encode_wav
from keras_transformer.tasks.speech_recognition.beginnings import Beginnings
from keras_transformer.tasks.speech_recognition.choices import Choices
from keras_transformer.tasks.speech_recognition.config import SpeechInput
from keras_transformer.tasks.speech_recognition.features import frames_of
from keras_transformer.tasks.speech_recognition.guide import guide_of
from keras_transformer.tasks.speech_recognition.rules import SpeechRules
from keras_transformer.tasks.speech_recognition.samples import content_of, samples_of
from keras_transformer.tasks.speech_recognition.silence import NAMES, NUMBERS, REPEATED, Silence
from keras_transformer.tasks.speech_recognition.timestamps import segments_in
from keras_transformer.tasks.speech_recognition.transcript import Transcript, read_transcripts
from keras_transformer.tensors import Tensor
from keras_transformer.text.tokenizers import Tokenizers

OF_EXPORTS = ("windows", "voice_activity")  # settings of `AnyLength`
EXAMPLE_SECONDS = 2  # of the recording in a README


class SpeechCodec(Codec):
    """The codec of a model that reads `samples`, `[B, N]`, and `lengths`, `[B]`.

    Args:
        speech: The `SpeechInput` of the model.
        tokenizer: The `Tokenizer`, or a pair of them, of which the second is used.
        max_length: Maximum length of an output in tokens, for the metadata of files.
        choices: The `Choices` of the model, whose prompt is not part of a text.
        silence: The `Silence` of the model, or `None`.
        beginnings: The `Beginnings` of a model that also reads the frames of windows, or `None`.
    """

    verb, example, number = "transcribe", "recording", "score"
    score_unit = "nats per token"
    most = together = 4  # windows of 30 seconds; more of them need more memory
    signature, suffixes = "samples", SUFFIXES
    request_specs = {"recordings": tf.TensorSpec([None], tf.string, name="recordings")}
    padding = {"samples": 0.0, "lengths": 0}
    choices, repeated = Choices(), REPEATED
    reading = AnyLength()  # how an export reads recordings

    is_stored = True

    def __init__(self, speech, tokenizer, max_length, choices=None, silence=None, beginnings=None):
        self.speech, self.tokenizers = speech, Tokenizers.of(tokenizer)
        self.tokenizer, self.max_length = self.tokenizers.target, max_length
        self.choices = self.choices if choices is None else choices
        self.silence: Any = silence
        self.beginnings: Any = beginnings
        self.further_signatures = () if beginnings is None else (FRAMES,)
        self.option_specs = self.choices.request_specs()
        self.longest = speech.max_samples
        self.together = self.most if speech.pad_to_max_seconds else None
        self.nothing = {"tokens": self.tokenizer.pad_id, "score": NONE, "length": 0}
        self.nothing |= {COMPLETE: True, "no_speech": 0.0, "mean_log_probability": NONE}
        self._rules = SpeechRules(speech, self.choices)

    @classmethod
    def of(
        cls, speech, tokenizer, max_length, choices=None, silence=None, beginnings=None
    ) -> "SpeechCodec":
        """Returns a codec whose `results` have the threshold of `silence` for repetition."""
        repeated = cls.repeated if silence is None else silence.compression_ratio_threshold
        kind = cls if repeated == cls.repeated else cls._with(repeated=repeated)
        return kind(speech, tokenizer, max_length, choices, silence, beginnings)

    @classmethod
    def _with(cls, **attributes):
        """Returns a class that differs in attributes that methods of the class read."""
        return type(cls.__name__, (cls,), attributes)

    @classmethod
    def of_lines(cls, metadata) -> type["SpeechCodec"]:
        """Returns the class for a SavedModel, which may have `Choices`; see `line_metadata`."""
        attributes = {}
        if "choices" in metadata:
            attributes["choices"] = Choices.from_dict(metadata["choices"])
        if "repeated" in metadata:
            attributes["repeated"] = metadata["repeated"]
            check_positive("repeated", attributes["repeated"])
        return cls._with(**attributes) if attributes else cls

    def line_metadata(self) -> dict[str, Any]:  # noqa: D102
        metadata = {"choices": self.choices.to_dict()} if self.choices.names else {}
        if self.repeated != REPEATED:
            metadata["repeated"] = self.repeated
        return metadata

    @classmethod
    def is_one(cls, examples) -> bool:
        """Returns whether `examples` is a path, the bytes of a file, or an array of samples."""
        return super().is_one(examples) or getattr(examples, "ndim", None) == 1

    @classmethod
    def check(cls, examples) -> list:  # noqa: D102
        if isinstance(examples, (str, bytes, os.PathLike)) or not hasattr(examples, "__iter__"):
            raise TypeError(f"`recordings` must be a list of recordings. Received: {examples!r}.")
        return list(examples)

    @classmethod
    def verify(cls, example) -> Any:  # noqa: D102
        if isinstance(example, (str, os.PathLike, bytes)):
            read_audio(example)
        return example

    @staticmethod
    def size(example) -> int:  # noqa: D102
        return 0 if isinstance(example, (str, os.PathLike)) else len(example)

    @staticmethod
    def shown(example) -> str:  # noqa: D102
        return str(example) if isinstance(example, (str, os.PathLike)) else "a recording"

    @classmethod
    def request(cls, examples) -> dict[str, Tensor]:
        """Returns `recordings`, the bytes of WAV files.

        Args:
            examples: List of paths, or of bytes of files.

        Raises:
            TypeError: If a recording is neither.
        """
        encoded = [content_of(example) for example in examples]
        return {"recordings": tf.constant(encoded, tf.string, [len(encoded)])}

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the settings of `changed`: those choices and thresholds that the model has."""
        return (*self.choices.names, *(() if self.silence is None else NAMES))

    def changed(self, **settings: Any) -> "SpeechCodec":
        """Returns a codec with other defaults of choices, and other thresholds; `None` keeps one.

        Raises:
            TypeError, ValueError: If the model does not have a choice or a value.
        """
        thresholds = () if self.silence is None else NAMES
        chosen = {name: value for name, value in settings.items() if name not in thresholds}
        silence = self.silence
        if len(chosen) < len(settings):
            given = [name for name in thresholds if settings.get(name) is not None]
            silence = dataclasses.replace(silence, **{name: settings[name] for name in given})
        choices = self.choices.replaced(**chosen)
        model = self.speech, self.tokenizers, self.max_length
        other = self.of(*model, choices, silence, self.beginnings)
        other.reading = self.reading
        return other

    @property
    def export_settings(self) -> tuple[str, ...]:  # noqa: D102
        return (*self.settings, *OF_EXPORTS)

    def changed_export(self, **settings: Any) -> "SpeechCodec":
        """Returns a codec that differs in settings, also in how recordings of any length are read.

        Args:
            **settings: See `changed` and `AnyLength`.

        Raises:
            TypeError, ValueError: See both.
        """
        own = {name: settings.pop(name) for name in OF_EXPORTS if name in settings}
        other = self.changed(**settings)
        other.reading = dataclasses.replace(self.reading, **own)
        other.reading.check(self)
        return other

    def answered(self, examples, encode, answer, run) -> list:
        """Returns a `Transcript` for each recording, of any length; see `AnyLength`."""
        recordings = [self.read(one, f"recording {n}") for n, one in enumerate(examples, start=1)]

        def transcribe(rows, choices):
            return answer(*self.tensors(rows, choices or None))

        return self.reading(self, recordings, transcribe, run)

    def encoded(self, signature, examples) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns the inputs of a signature; the frames of `FRAMES` are those of the samples."""
        inputs, rest = super().encoded(signature, examples)
        if signature not in self.further_signatures:
            return inputs, rest
        frames = frames_of(self.speech, inputs.pop("samples"), inputs.pop("lengths"))
        prompt = self.beginnings.of_choices(self.choices, len(examples), inputs)
        first = tf.fill([len(examples)], self.beginnings.start)
        return {"frames": frames, "prompt": prompt, "first": first}, rest

    def options(self, examples) -> dict[str, Tensor]:
        """Returns a request for the defaults, of which every second one is left out."""
        named = tf.equal(tf.range(len(examples)) % 2, 0)
        return {
            name: values if values.dtype == tf.bool else tf.where(named, values, "")
            for name, values in self.choices.request(len(examples)).items()
        }

    def encode(self, recordings, **options) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns the inputs of the model, and the rest; see `tensors`.

        Args:
            recordings: Contents of WAV files, string `[B]`.
            **options: See `Choices.looked_up`.
        """
        choices = self.choices.looked_up(tf.size(recordings), **options)
        inputs, rest = self._read(recordings)
        return {**inputs, **choices}, rest

    def _read(self, recordings):
        if tf.executing_eagerly():  # so that an error names the recording
            contents = recordings.numpy()
            rows = [
                self.read(content, f"recording {number}")
                for number, content in enumerate(contents, start=1)
            ]
            return self.tensors(rows, {})
        samples = decode_wav(recordings, self.speech.sample_rate)  # ragged [B, (N)]
        lengths = tf.cast(samples.row_lengths(), tf.int32)
        samples = samples.to_tensor(0.0)
        cut = tf.minimum(lengths, self.longest)
        return self._rules.checked_sound(samples[:, : self.longest], cut), self.rest(lengths)

    def tensors(self, rows, choices=None) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns the inputs of the model and the rest for a list of recordings.

        Args:
            rows: List of arrays of samples.
            choices: Result of `Choices.rows`. `None`: the defaults.

        Returns:
            `samples`, `lengths` and the numbers of the choices; `truncated` and `seconds`, `[B]`.
        """
        choices = self.choices.rows(len(rows)) if choices is None else choices
        lengths = np.array([len(row) for row in rows], np.int32)
        rest, lengths = self.rest(lengths), np.minimum(lengths, self.longest)
        longest = int(lengths.max(initial=self.speech.hop_length))
        samples = np.zeros([len(rows), longest], np.float32)
        for to, row, length in zip(samples, rows, lengths, strict=True):
            to[:length] = row[:length]
        inputs = {"samples": samples, "lengths": lengths, **choices}
        return {name: tf.constant(values) for name, values in inputs.items()}, rest

    def unread(self, count) -> dict[str, Tensor]:
        """Returns valid inputs of the model that are as short as possible."""
        inputs, _ = self.tensors([np.zeros(self.speech.hop_length, np.float32)] * count)
        return inputs

    def rest(self, lengths) -> dict[str, Tensor]:
        """Returns the tensors that `answers` needs besides the outputs, for lengths `[B]`."""
        cut = tf.cast(tf.minimum(lengths, self.longest), tf.float32)
        truncated = tf.convert_to_tensor(lengths > self.longest)
        return {"truncated": truncated, "seconds": cut / self.speech.sample_rate}

    def words_in(self, tokens) -> list[int]:
        """Returns the tokens of an output that have a text: all but those from `eos_id` on.

        Args:
            tokens: Token ids, a list. Timestamps, languages and tasks come after `eos_id`, as in
                Whisper.
        """
        return [token for token in tokens if token < self.tokenizer.eos_id]

    def read(self, recording, name) -> np.ndarray:
        """Returns the samples of a recording, float32 `[N]`, at the sample rate of the model.

        Args:
            recording: A path, the bytes of a file, or an array of samples.
            name: Name of the recording in errors, if it is not a path.

        Raises:
            TypeError: If an array has another dtype or rank.
            ValueError: If the recording cannot be read or is too short; the error is one line.
        """
        samples = samples_of(recording, self.speech.sample_rate, name)
        if isinstance(recording, (str, os.PathLike)):
            name = recording
        if len(samples) < self.speech.hop_length:
            raise ValueError(
                f"{name}: must have at least {self.speech.hop_length} samples, the time of a "
                f"frame. Received: {len(samples)}."
            )
        return samples

    def exported(self, recording, name) -> Any:
        """Returns a recording in a form that exports read as the run does.

        Args:
            recording, name: See `read`.

        Returns:
            A path or the bytes of a WAV file of 16 bits, at the sample rate of the model and not
            longer than its limit: the recording itself if it is one, otherwise its beginning.

        Raises:
            TypeError, ValueError: See `read`.
        """
        samples, rate = self.read(recording, name), self.speech.sample_rate
        if isinstance(recording, (str, os.PathLike, bytes)) and len(samples) <= self.longest:
            try:
                decode_wav(tf.constant([content_of(recording)]), rate)
                return recording
            except tf.errors.InvalidArgumentError:
                pass  # another format or sample rate, which only a run converts
        return encode_wav(samples[: self.longest], rate)

    def outputs(self, prediction) -> dict[str, Tensor]:
        """Returns `tokens` `[B, L]`, `score`, `length` and `complete` `[B]` of a `Found`.

        Also the numbers of a `Silence`, `[B]`, if the search has computed them.
        """
        tokens = tf.squeeze(prediction.tokens, 1)  # [B, L], the best output
        real = tf.not_equal(tokens, self.tokenizer.pad_id)
        length = tf.reduce_sum(tf.cast(real, tf.int32), axis=1)
        outputs = {"tokens": tokens, "score": tf.squeeze(prediction.scores, 1), "length": length}
        outputs[COMPLETE] = tf.squeeze(prediction.complete, 1)
        numbers = {name: getattr(prediction, name) for name in NUMBERS}
        known = {name: values for name, values in numbers.items() if values is not None}
        return outputs | {name: tf.squeeze(values, 1) for name, values in known.items()}

    def named(self, outputs, silence=None) -> dict[str, Tensor]:
        """Adds `transcript`, `[B]`, the text of the tokens after the prompt, and `language`.

        Args:
            outputs: See `outputs`.
            silence: The `Silence`, whose thresholds may be tensors. `None`: that of the model.
        """
        tokens, begin = self._spoken(outputs, silence), len(self.choices.prompt)
        named = {**outputs, "transcript": self.tokenizer.decode(tokens[:, begin:])}
        if self.choices.languages:
            named["language"] = self.choices.language_names(tf.convert_to_tensor(outputs["tokens"]))
        return named

    def _spoken(self, outputs, silence=None):
        """Returns the tokens `[B, L]`, of which those of silence are padding."""
        tokens = tf.convert_to_tensor(outputs["tokens"])
        if "no_speech" not in outputs:
            return tokens
        is_silent = tf.expand_dims((silence or self.silence).holds(outputs), 1)  # [B, 1]
        return tf.where(is_silent, self.tokenizer.pad_id, tokens)

    def answers(self, outputs, rest, silence=None) -> dict[str, Tensor]:  # noqa: D102
        named = {**self.named(outputs, silence), "truncated": rest["truncated"]}
        del named["tokens"]
        if self.choices.timestamp_id is None:
            return named
        has = self.choices.has_timestamps(tf.convert_to_tensor(outputs["tokens"]))
        return {**named, **self._segments(self._spoken(outputs, silence), has, rest)}

    def _segments(self, tokens, has, rest):
        """Returns the segments of outputs, of those that have timestamps; see `segments_in`."""
        tokens = tf.where(tf.expand_dims(has, 1), tokens, self.tokenizer.pad_id)
        speech = self.speech
        step = speech.conv_stride * speech.hop_length / speech.sample_rate
        first = self.choices.timestamp_id
        return segments_in(tokens, first, step, rest["seconds"], self.tokenizer)

    @classmethod
    def results(cls, answers) -> list[Transcript]:
        """Returns a `Transcript` for each recording."""
        return read_transcripts(answers, cls.repeated)

    def checked(self, samples, lengths, **choices) -> dict[str, Tensor]:  # noqa: D102
        return self._rules.checked(samples, lengths, **choices)

    def screen(self, samples, lengths, **choices) -> tuple[Tensor, dict[str, Tensor]]:  # noqa: D102
        return self._rules.screen(samples, lengths, **choices)

    def input_specs(self, rows=None, length=None) -> dict[str, tf.TensorSpec]:  # noqa: D102
        return {
            "samples": tf.TensorSpec([rows, length], tf.float32, name="samples"),
            "lengths": tf.TensorSpec([rows], tf.int32, name="lengths"),
            **self.choices.specs(rows),
        }

    def frame_specs(self, rows=None) -> dict[str, tf.TensorSpec]:
        """Returns the `tf.TensorSpec`s of the inputs of the signature `frames`, by name."""
        frames = [rows, self.speech.max_frames, self.speech.num_mel_filters]
        prompt = [rows, self.beginnings.width(self.choices)]
        return {
            "frames": tf.TensorSpec(frames, tf.float32, name="frames"),
            "prompt": tf.TensorSpec(prompt, tf.int32, name="prompt"),
            "first": tf.TensorSpec([rows], tf.int32, name="first"),
        }

    def further_specs(self, signature) -> dict[str, tf.TensorSpec]:  # noqa: D102
        return self.frame_specs()

    def lengths(self, inputs) -> list[int]:  # noqa: D102
        return np.asarray(inputs["lengths"]).tolist()

    def usual_lengths(self) -> list[int]:  # noqa: D102
        return [self.speech.max_samples]

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        names = ("pad", "unk", "bos", "eos")
        return {
            "tokens": {name: getattr(self.tokenizer, f"{name}_id") for name in names},
            "vocab_size": self.tokenizer.vocab_size,
            "max_length": self.max_length,
            "speech": self.speech.to_dict(),
            "choices": self.choices.to_dict(),
            "silence": None if self.silence is None else dataclasses.asdict(self.silence),
            "windows": None if self.beginnings is None else dataclasses.asdict(self.beginnings),
            "long_recordings": self.reading.windows,
            "samples": self._rules.text,
        }

    @classmethod
    def from_metadata(cls, metadata, tokenizers) -> "SpeechCodec":  # noqa: D102
        speech = SpeechInput(**metadata["speech"])
        choices = Choices.from_dict(metadata["choices"])
        silence = metadata["silence"]
        silence = None if silence is None else Silence(**silence)
        beginnings = metadata.get("windows")
        beginnings = None if beginnings is None else Beginnings(**beginnings)
        length = metadata["max_length"]
        codec = cls.of(speech, tokenizers, length, choices, silence, beginnings)
        codec.reading = AnyLength(metadata.get("long_recordings"))
        codec.reading.check(codec)
        return codec

    def guide(self, example) -> Guide:  # noqa: D102
        rate = self.speech.sample_rate
        samples = self.read(example, "the recording")[: EXAMPLE_SECONDS * rate]
        return guide_of(self, encode_wav(samples, rate))

    def quality(self, results, references) -> dict[str, float]:
        """Returns the `word_accuracy`, 100 minus the word error rate in percent."""
        from keras_transformer.tasks.speech_recognition.metrics import word_error_rate

        texts = [result.transcript for result in results]
        return {"word_accuracy": 100 * (1 - word_error_rate(texts, references))}
