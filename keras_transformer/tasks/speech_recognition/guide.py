"""Sentences about a model of speech for the README beside a SavedModel."""

import base64
from collections.abc import Iterator
from typing import Any

from keras_transformer.decoding.prompts import NO_TOKEN
from keras_transformer.tasks.signatures import FRAMES, OPTIONS
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.text import MODULES
from keras_transformer.text.languages import DETECTED

FILE = "recording.wav"
SEGMENTS = ("segment_starts", "segment_ends", "segment_texts")


def guide_of(codec: Any, encoded: bytes) -> Guide:
    """Returns the `Guide` of a model.

    Args:
        codec: Its `SpeechCodec`.
        encoded: Content of a WAV file, for the example of a request.
    """
    speech = codec.speech
    return Guide(
        purpose="Writes down speech",
        request={"recordings": f'[{{"b64": "{base64.b64encode(encoded).decode()}"}}]'},
        axes={
            "samples": "B, N",
            "tokens": "B, L",
            **dict.fromkeys(SEGMENTS, "B, K"),
            **_axes_of_frames(codec),
        },
        notes=[
            "B: number of recordings in the request. `recordings` are the bytes of WAV files "
            f"with {speech.sample_rate:,} samples a second, in JSON as Base64; `samples` are "
            "numbers from -1 to 1, N for the longest recording, and `lengths` are the numbers "
            "of samples of each.",
            f"A recording of more than {speech.max_seconds:g} seconds is cut, and `truncated` "
            "is true: send longer ones in parts. A recording that cannot be read is an error.",
            "L: maximum number of tokens. `score`: the natural logarithm of the probability "
            "of the transcript, or with CTC of the best path.",
            "`complete` is false for an output that reached its maximum length: text is missing, "
            "or the model repeated itself.",
            *_notes(codec.choices, codec.signature),
            *_notes_on_silence(codec.silence),
            *_notes_on_frames(codec),
        ],
        modules=MODULES,
        arguments={"recordings": f'tf.stack([tf.io.read_file("{FILE}")])'},
        files={FILE: encoded},
    )


def _notes(choices, signature) -> Iterator[str]:
    """Yields sentences about `Choices` and segments; `signature` has the choices as numbers."""
    known = {"language": [*choices.languages, DETECTED], "task": [*choices.tasks]}
    for name in choices.names:
        if name in known:
            yield (
                f"`{name}` of the signature `{OPTIONS}`: {', '.join(known[name])}; or empty "
                f"for the default, {getattr(choices, name)}."
            )
    if choices.names:
        yield (
            f"In the signature `{signature}` they are numbers. {' '.join(choices.rules().values())}"
        )
    if choices.timestamp_id is not None:
        yield (
            "K: maximum number of segments of a recording with timestamps, the texts between "
            "two times in seconds; -1 and empty texts fill the rows."
        )


def _notes_on_silence(silence) -> Iterator[str]:
    """Yields a sentence about a `Silence`, unless it is `None`."""
    if silence is not None:
        yield (
            "`no_speech`: the probability that nobody speaks. `mean_log_probability`: that of a "
            f"token, in nats. `transcript` is empty if the first is above "
            f"{silence.no_speech_threshold:g} and the second below "
            f"{silence.log_probability_threshold:g}."
        )


def _axes_of_frames(codec):
    """Returns the axes of the inputs of the signature `frames`, if the model has one."""
    if codec.beginnings is None:
        return {}
    sizes = {name: spec.shape[1:] for name, spec in codec.frame_specs().items()}
    return {name: ", ".join(["B", *map(str, size)]) for name, size in sizes.items()}


def _notes_on_frames(codec) -> Iterator[str]:
    """Yields a sentence about the signature `frames`, if the model has one."""
    if codec.beginnings is not None:
        yield (
            f"The signature `{FRAMES}` reads a window of a long recording: its log-mel frames, "
            f"then zeros; the tokens that the output begins with, then {NO_TOKEN}; and the first "
            "input of the decoder. `predict` reads recordings of any length by it."
        )
