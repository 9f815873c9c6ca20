"""Times of the words of transcripts."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.models.model import named_weights
from keras_transformer.tasks.speech_recognition.alignment import begins_of
from keras_transformer.tasks.speech_recognition.attention import words_of_tokens
from keras_transformer.tasks.speech_recognition.segments import Segment

TOGETHER = 4  # windows whose attention is computed at a time


@dataclasses.dataclass(frozen=True)
class Spoken:
    """A text in a window of a recording.

    Args:
        frames: Frames of the window as the model reads them, `[S, F]`, perhaps without zeros at the
            end.
        count: Number of frames that belong to the recording.
        prompt: Token ids between the start and the text, such as those of language and task, a
            list, without `no_timestamps_id`.
        tokens: Token ids of the text, a list, without timestamps and end.
        begin: Time of the window in the recording, in seconds.
    """

    frames: np.ndarray
    count: int
    prompt: list[int]
    tokens: list[int]
    begin: float


def of_windows(recognizer: Any, windows: Sequence[Spoken]) -> list[tuple[Segment, ...]]:
    """Returns the words of each window, with their times in the recording.

    The attention of the model's `alignment_heads` to the sound is computed for the whole text at
    once, see `begins_of`.

    Args:
        recognizer: A `SpeechRecognizer` of one model.
        windows: The windows.
    """
    found = []
    for first in range(0, len(windows), TOGETHER):
        some = windows[first : first + TOGETHER]
        weights = _weights(recognizer, some)
        found += [_words(recognizer, *pair) for pair in zip(some, weights, strict=True)]
    return found


def _weights(recognizer, windows):
    """Returns the weights `[H, T, S]` of each window, of its own tokens and positions."""
    config, speech = recognizer.model.config, recognizer.codec.speech
    most = config.decoder.max_length
    tokens, without = config.tokens, config.head.rules.no_timestamps_id
    marks = [] if without is None else [without]
    rows = [
        [tokens.bos_id, *one.prompt, *marks, *one.tokens, tokens.eos_id][:most] for one in windows
    ]
    target = np.full([len(rows), max(map(len, rows))], tokens.pad_id, np.int32)
    frames = np.zeros([len(rows), speech.max_frames, speech.num_mel_filters], np.float32)
    for row, (to, ids, one) in enumerate(zip(target, rows, windows, strict=True)):
        to[: len(ids)], frames[row, : len(one.frames)] = ids, one.frames
    weights = recognizer.of_words()(tf.constant(frames), tf.constant(target)).numpy()
    return [
        weights[row, :, : len(ids), : max(1, one.count // speech.conv_stride)]
        for row, (ids, one) in enumerate(zip(rows, windows, strict=True))
    ]


def graph(recognizer: Any) -> Any:
    """Returns the graph from frames `[B, S, F]` and target `[B, T]` to weights `[B, H, T, S]`."""
    model, heads = recognizer.model, recognizer.model.config.head.rules.alignment_heads
    speech = recognizer.codec.speech

    def attend(frames, target):
        memory, mask = model.encode(frames)
        decoder = model.parts.decoder
        x = decoder.embed(decoder.read(target, frames), training=False)
        how = {"memory_attention_mask": mask, "return_attention_scores": True, "training": False}
        _, weights = model.decoder(x, memory, **how)
        weights = named_weights(model.decoder, weights)
        chosen = [weights[f"decoder/block_{layer}/cross_attention"][:, n] for layer, n in heads]
        return tf.cast(tf.stack(chosen, axis=1), tf.float32)

    shape = [None, speech.max_frames, speech.num_mel_filters]
    return tf.function(attend, autograph=False).get_concrete_function(
        tf.TensorSpec(shape, tf.float32), tf.TensorSpec([None, None], tf.int32)
    )


def _words(recognizer, window, weights):
    speech = recognizer.codec.speech
    seconds = speech.conv_stride * speech.hop_length / speech.sample_rate  # of a position
    if not window.tokens:
        return ()
    begins = window.begin + seconds * begins_of(weights, 1 + len(window.prompt))
    words, members = words_of_tokens(recognizer.codec.tokenizer, window.tokens)
    last = len(begins) - 1  # a text may fill the positions of the decoder, without its end
    return tuple(
        Segment(
            round(float(begins[min(places[0], last)]), 2),
            round(float(begins[min(places[-1] + 1, last)]), 2),
            word.strip(),
        )
        for word, places in zip(words, members, strict=True)
    )
