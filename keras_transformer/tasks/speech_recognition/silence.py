"""Outputs that a model invents although nobody speaks, and texts that repeat themselves."""

import dataclasses
import zlib
from typing import Any

import tensorflow as tf

from keras_transformer.checks import check_finite, check_positive, check_share
from keras_transformer.tensors import Tensor

REPEATED = 2.4  # compression ratio above which a text repeats itself, as in OpenAI's Whisper
NUMBERS = ("no_speech", "mean_log_probability")  # outputs of models that know silence


@dataclasses.dataclass(frozen=True)
class Silence:
    """Thresholds by which the output of a window of a recording counts as invented.

    The transcript is empty if silence is probable and the output is not. A text that repeats itself
    is reported.

    Args:
        no_speech_threshold: Probability of no speech above which it is probable, from 0 to 1. 1:
            every window keeps its text.
        log_probability_threshold: Mean log-probability of a token, in nats, below which the output
            is improbable.
        compression_ratio_threshold: Ratio of the bytes of a text to those of the text compressed by
            zlib, above which it repeats itself.

    Raises:
        TypeError, ValueError: If a threshold is not such a number.

    Reference: Radford et al. (2022), "Robust Speech Recognition via Large-Scale Weak Supervision",
        section 4.5.
    """

    no_speech_threshold: float = 0.6
    log_probability_threshold: float = -1.0
    compression_ratio_threshold: float = REPEATED

    def __post_init__(self) -> None:
        if tf.is_tensor(self.no_speech_threshold):
            return
        check_share("no_speech_threshold", self.no_speech_threshold)
        check_finite("log_probability_threshold", self.log_probability_threshold)
        check_positive("compression_ratio_threshold", self.compression_ratio_threshold)

    @classmethod
    def of(cls, config: Any, **chosen: float | None) -> "Silence | None":
        """Returns the thresholds of a model; `None` without `no_speech_id`.

        Args:
            config: The `SpeechTransformerConfig`.
            **chosen: Other thresholds; `None` is that of the model.

        Raises:
            TypeError, ValueError: If a threshold is not valid, or the model does not have it.
        """
        chosen = {name: value for name, value in chosen.items() if value is not None}
        if config.head.rules.no_speech_id is not None:
            return cls(**{name: getattr(config.head.rules, name) for name in NAMES} | chosen)
        if chosen:
            (name, value), *_ = chosen.items()
            raise ValueError(
                f"`{name}` must be None for a model that does not compute the probability of "
                f"silence (`no_speech_id`), as Whisper does if its checkpoint is converted again. "
                f"Received: {name}={value!r}."
            )
        return None

    def holds(self, outputs: dict[str, Tensor]) -> Tensor:
        """Returns which outputs count as silence, boolean `[B]`."""
        no_speech, mean = (tf.convert_to_tensor(outputs[name]) for name in NUMBERS)
        is_probable = no_speech > self.no_speech_threshold
        return is_probable & (mean < self.log_probability_threshold)


NAMES = tuple(field.name for field in dataclasses.fields(Silence))


def compression_ratio(text: str) -> float:
    """Returns the number of bytes of a text over that of the text compressed by zlib.

    A text that repeats itself has a large ratio; the empty text has 0.
    """
    content = text.encode()
    return len(content) / len(zlib.compress(content))
