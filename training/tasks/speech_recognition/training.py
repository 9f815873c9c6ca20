"""Training of speech recognition."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_transformer.fields import Frames, Tokens
from keras_transformer.fields.field import Field
from keras_transformer.tasks.speech_recognition.audio.spec_augment import num_draws, spec_augment
from keras_transformer.tasks.speech_recognition.features import frames_of
from keras_transformer.tensors import Tensor
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.tasks.task import TextTraining


class SpeechRecognitionTraining(TextTraining):
    """Training on recordings and their texts with the smoothed cross-entropy of the tokens.

    Frames are computed once and stored with 16 bits. A batch is ({"source": [B, S, F] float32,
    "target": [B, T] int32}, labels [B, T] int32); frames of zeros are padding, and a row of
    `target` begins with `bos_id` and the model's `prompt_ids`, whose labels are padding.
    """

    columns = ("audio", "text")
    encoded_together = 16  # 1,024 examples of a chunk have up to 0.5 GB of frames

    @property
    def fields(self) -> dict[str, Field]:  # noqa: D102
        speech = self.config.input
        return {
            "frames": Frames(speech.num_mel_filters, "float16", speech.max_frames),
            "text": Tokens(self.tokenizers.target),
        }

    def encode(self, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        """Encodes a batch: frames of the samples, one recording at a time, and tokens."""
        speech, fields = self.config.input, self.fields
        spec = tf.RaggedTensorSpec([None, speech.num_mel_filters], tf.float32, ragged_rank=0)

        def frames(samples):
            too_long = tf.cast(tf.shape(samples)[0] > speech.max_samples, tf.int32)
            samples = tf.cast(samples[: speech.max_samples], tf.float32)
            computed = frames_of(speech, samples[None], tf.shape(samples))[0]  # [S, F]
            too_short = tf.shape(samples)[0] < speech.hop_length  # also if silence follows
            # No frames, or one more than the field allows: the example is counted and left out.
            return tf.pad(
                computed[: tf.where(too_short, 0, speech.max_frames)], [[0, too_long], [0, 0]]
            )

        audio = columns["audio"]
        return {
            "frames": fields["frames"].encode(tf.map_fn(frames, audio, fn_output_signature=spec)),
            "text": fields["text"].encode(columns["text"]),
        }

    def corpus(
        self, data: Any, split: str, settings: Any, stores: Any = None, sampled: bool = False
    ) -> Corpus:
        """Returns the encoded examples of a split; see `Training.corpus`.

        Raises:
            ValueError: If a text of maximum length and the model's `prompt_ids` are longer than its
                `max_length`.
        """
        prompt = self.config.head.rules.prompt_ids
        longest = self.config.max_length - len(prompt)
        if settings.max_length > longest:
            raise ValueError(
                f"`data.max_length` must be at most {longest}, so that the model's `max_length` of "
                f"{self.config.max_length} also suffices for the {len(prompt)} "
                f"tokens of its prompt. Received: data.max_length={settings.max_length}."
            )
        return super().corpus(data, split, settings, stores, sampled)

    def variation(
        self, settings: Any
    ) -> Callable[[Tensor, dict[str, Tensor]], dict[str, Tensor]] | None:
        """Returns a function that masks parts of the frames: see `spec_augment`."""
        if not self.num_draws(settings):
            return None
        options = {
            name: getattr(settings, name)
            for name in ("time_masks", "max_time_mask", "frequency_masks", "max_frequency_mask")
        }

        silence_follows = self.config.input.pad_to_max_seconds

        def mask(draws, columns):
            frames = columns["frames"]
            # The frames of appended silence have the lowest value of a recording only.
            lowest = tf.reduce_min(frames, axis=[1, 2], keepdims=True) if silence_follows else 0
            real = tf.reduce_any(tf.not_equal(frames, tf.cast(lowest, frames.dtype)), axis=2)
            numbers = tf.where(real, tf.range(1, tf.shape(real)[1] + 1), 0)  # [B, S]
            lengths = tf.reduce_max(numbers, axis=1)
            return {**columns, "frames": spec_augment(draws, frames, lengths, **options)}

        return mask

    def num_draws(self, settings: Any) -> int:  # noqa: D102
        names = ("time_masks", "frequency_masks")
        return num_draws(*(getattr(settings, name, 0) for name in names))

    def identity(self) -> dict[str, Any]:  # noqa: D102
        speech = self.config.input
        silence = speech.max_seconds if speech.pad_to_max_seconds else None
        return {**super().identity(), "features": speech.features, "silence": silence}

    def assemble(self, frames, text) -> tuple:  # noqa: D102
        shape = [tf.shape(text)[0], len(self.config.head.rules.prompt_ids)]
        prompt = tf.broadcast_to(tf.constant(self.config.head.rules.prompt_ids, tf.int32), shape)
        target = self.shifted(tf.concat([prompt, text], axis=1))
        labels = tf.concat([tf.fill(shape, self.pad_id), text], axis=1)
        return {"source": tf.cast(frames, tf.float32), "target": target}, labels
