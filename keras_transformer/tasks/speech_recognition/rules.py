"""Rules of the tensors that a model of speech reads, in graphs."""

from typing import Any

import tensorflow as tf

from keras_transformer.tasks.speech_recognition.audio.wav import LOUDEST
from keras_transformer.tasks.speech_recognition.choices import Choices
from keras_transformer.tasks.speech_recognition.features import within
from keras_transformer.tasks.token_rows import assertions
from keras_transformer.tensors import Tensor

RULE = (
    "Each row: `samples`, one channel of {rate} samples a second from -1 to 1 (clipped ones may be "
    "up to {loudest:g}), and `lengths`, how many of them belong to the recording, from {least} to "
    "{most}; samples after them are ignored. "
    "{choices}For a row that breaks these rules, the tokens are pad and the score is -1e9. Other "
    "rows are not affected."
)


class SpeechRules:
    """Rules of `samples` `[B, N]`, `lengths` `[B]` and the numbers of choices `[B]`.

    Args:
        speech: The `SpeechInput` of the model.
        choices: Its `Choices`.
    """

    def __init__(self, speech: Any, choices: Choices):
        self._least, self._most, self._choices = speech.hop_length, speech.max_samples, choices
        self._rate = speech.sample_rate

    @property
    def text(self) -> str:
        """The rules as sentences, for the metadata of files."""
        return RULE.format(
            rate=f"{self._rate:,}",
            loudest=LOUDEST,
            least=self._least,
            most=self._most,
            choices="".join(f"{rule} " for rule in self._choices.rules().values()),
        )

    def checked(self, samples, lengths, **choices) -> dict[str, Tensor]:
        """Returns the inputs of a model after an assertion for each rule; see `Codec.checked`."""
        rules, valid = self._choices.rules(), self._choices.valid(**choices)
        checks = {rule: valid[name] for name, rule in rules.items()}
        for name, values in choices.items():
            equal = tf.equal(tf.size(values), tf.size(lengths))
            checks[f"`{name}` must have one number for each of `lengths`."] = equal
        inputs = self.checked_sound(samples, lengths)
        with tf.control_dependencies(assertions(checks)):
            return {**inputs, **{name: tf.identity(values) for name, values in choices.items()}}

    def checked_sound(self, samples, lengths) -> dict[str, Tensor]:
        """Returns `samples` and `lengths` after an assertion for each of their rules."""
        samples = within(samples, lengths)
        checks = {
            f"`lengths` must be at least {self._least}, the time of a frame, and at most "
            f"{self._most}.": (lengths >= self._least) & (lengths <= self._most),
            "`lengths` must be at most the number of samples in a row.": lengths
            <= tf.shape(samples)[1],
            "`samples` must be from -1 to 1; divide integers of 16 bits by 32768.": _in_range(
                samples
            ),
        }
        with tf.control_dependencies(assertions(checks)):
            return {"samples": tf.identity(samples), "lengths": tf.identity(lengths)}

    def screen(self, samples, lengths, **choices) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns which rows follow the rules, and inputs that do; see `Codec.screen`."""
        samples = within(samples, lengths)
        most = tf.minimum(tf.shape(samples)[1], self._most)
        valid = (lengths >= self._least) & (lengths <= most)
        valid &= tf.reduce_all(_in_range(samples), axis=1)
        for known in self._choices.valid(**choices).values():
            valid &= known
        return valid, {
            "samples": tf.where(tf.expand_dims(valid, 1), samples, 0.0),
            "lengths": tf.where(valid, lengths, self._least),
            **{
                name: tf.where(valid, choices[name], default)
                for name, default in self._choices.numbers().items()
            },
        }


def _in_range(samples):
    """Returns which samples `check_range` accepts, a boolean for each; NaN is not one of them."""
    return tf.abs(samples) <= LOUDEST
