"""Signatures that take the frames of a window, and what the output begins with."""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Prompted
from keras_transformer.decoding.prompts import DETECTED, NO_TOKEN
from keras_transformer.tasks.signatures import ARRAYS, FRAMES, Signature
from keras_transformer.tasks.speech_recognition.features import frames_of
from keras_transformer.tasks.speech_recognition.graphs import outputs_of
from keras_transformer.tasks.token_rows import assertions
from keras_transformer.tensors import Tensor


class FrameSignatures:
    """The signature `frames` of a recognizer, and one that takes samples or frames.

    - `frames`, float32 `[B, S, F]`: those of a window of a recording, S = `max_frames`; zeros come
      after the end of the recording;
    - `prompt`, int32 `[B, P]`, and `first`, int32 `[B]`: see `Prompted`.

    Args:
        recognizer: A `SpeechRecognizer` whose codec has `beginnings`.
    """

    def __init__(self, recognizer: Any):
        self._recognizer, self._codec = recognizer, recognizer.codec

    def of_frames(self) -> Signature:
        """Returns the signature `frames`."""
        codec, specs = self._codec, self._codec.frame_specs()
        rules = self._checked, self._screen, codec.nothing, codec.named
        return Signature(FRAMES, ARRAYS, specs, self._find, *rules)

    def of_either(self) -> Signature:
        """Returns a signature that takes samples, or frames if they are given.

        A call leaves out all three inputs of `frames`; or it gives them, and as many samples, which
        are ignored. All rows of another call are invalid.
        """
        specs = self._codec.frame_specs()
        return Signature(
            None,
            ARRAYS,
            {**self._codec.input_specs(), **specs},
            self._find_either,
            screen=self._screen_either,
            nothing=self._codec.nothing,
            defaults={
                name: np.zeros([0, *spec.shape[1:]], spec.dtype.as_numpy_dtype)
                for name, spec in specs.items()
            },
        )

    def _find(self, frames, prompt, first):
        inputs = Prompted(frames, prompt, first)
        return outputs_of(self._recognizer, inputs, self._recognizer.search)

    def _find_either(self, samples, lengths, frames, prompt, first, **numbers):
        codec = self._codec

        def of_samples():
            count = tf.shape(lengths)[0]
            sound = frames_of(codec.speech, samples, lengths)
            own = codec.beginnings.of_choices(codec.choices, count, numbers)
            return sound, own, tf.fill([count], codec.beginnings.start)

        def given():
            return frames, prompt, first

        chosen = tf.cond(tf.shape(frames)[0] > 0, given, of_samples)
        specs = codec.frame_specs().values()
        inputs = [tf.ensure_shape(x, spec.shape) for x, spec in zip(chosen, specs, strict=True)]
        return self._find(*inputs)

    def _screen_either(self, samples, lengths, frames, prompt, first, **numbers):
        valid, inputs = self._codec.screen(samples=samples, lengths=lengths, **numbers)
        count = tf.shape(lengths)[0]
        rows = tf.stack([tf.shape(values)[0] for values in (frames, prompt, first)])
        none = tf.reduce_all(tf.equal(rows, 0))
        read = tf.where(tf.reduce_all(tf.equal(rows, count)), count, 0)  # rows of frames
        known, given = self._screen(frames[:read], prompt[:read], first[:read])
        known = tf.concat([known, tf.fill([count - read], none)], axis=0)
        return valid & known, {**inputs, **given}

    def _known(self, prompt, first):
        """Returns which rows are tokens of the vocabulary, and prompts without gaps, `[B]`."""
        size = self._codec.tokenizer.vocab_size
        least = [NO_TOKEN] * prompt.shape[1]
        if self._codec.choices.languages:
            least[0] = DETECTED
        known = tf.reduce_all((prompt >= tf.constant(least)) & (prompt < size), axis=1)
        ends = tf.equal(prompt, NO_TOKEN)  # [B, P]
        last = tf.reduce_all(~ends[:, :-1] | ends[:, 1:], axis=1)  # no token follows the end
        return known & last & (first >= 0) & (first < size)

    def _checked(self, frames, prompt, first) -> dict[str, Tensor]:
        same = tf.equal(tf.shape(prompt)[0], tf.shape(frames)[0])
        same &= tf.equal(tf.shape(first)[0], tf.shape(frames)[0])
        most = self._codec.tokenizer.vocab_size - 1
        detects = f", or {DETECTED} at its beginning" if self._codec.choices.languages else ""
        checks = {
            "`prompt` and `first` must have one row for each of `frames`.": same,
            f"`prompt` and `first` must be token ids, from 0 to {most}, and {NO_TOKEN} after the "
            f"end of a prompt{detects}.": self._known(prompt, first),
        }
        with tf.control_dependencies(assertions(checks)):
            return {"frames": tf.identity(frames), "prompt": prompt, "first": first}

    def _screen(self, frames, prompt, first) -> tuple[Tensor, dict[str, Tensor]]:
        valid = self._known(prompt, first)
        return valid, {
            "frames": frames,
            "prompt": tf.where(tf.expand_dims(valid, 1), prompt, NO_TOKEN),
            "first": tf.where(valid, first, self._codec.beginnings.start),
        }
