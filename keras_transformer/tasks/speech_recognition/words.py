"""Times of the words of transcripts."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.models.model import named_weights
from keras_transformer.tasks.speech_recognition.alignment import begins_of
from keras_transformer.tasks.speech_recognition.attention import words_of_tokens
from keras_transformer.tasks.speech_recognition.segments import Word

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


def of_windows(recognizer: Any, windows: Sequence[Spoken]) -> list[tuple[Word, ...]]:
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
        read = _read(recognizer, some)
        found += [_words(recognizer, one, *own) for one, own in zip(some, read, strict=True)]
    return found


def _read(recognizer, windows):
    """Returns the weights `[H, T, S]` and the probabilities `[T - 1]` of each window.

    They are those of its own tokens and positions. Probability n is that of token n + 1.
    """
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
    outputs = recognizer.of_words()(tf.constant(frames), tf.constant(target))
    weights, probabilities = (output.numpy() for output in outputs)
    return [
        (
            weights[row, :, : len(ids), : max(1, one.count // speech.conv_stride)],
            probabilities[row, : len(ids) - 1],
        )
        for row, (ids, one) in enumerate(zip(rows, windows, strict=True))
    ]


def graph(recognizer: Any) -> Any:
    """Returns the graph from frames `[B, S, F]` and target `[B, T]` to weights and probabilities.

    The weights are `[B, H, T, S]`. The probabilities `[B, T - 1]` are those of all tokens but the
    first one among the tokens of text, those below `eos_id`, as in `find_alignment` of OpenAI's
    Whisper.
    """
    model, heads = recognizer.model, recognizer.model.config.head.rules.alignment_heads
    speech, words = recognizer.codec.speech, recognizer.model.config.tokens.eos_id

    def probabilities(row):
        x, following = row  # [T - 1, D], [T - 1]; a row at a time, for the memory of the logits
        logits = tf.cast(model.output_weights.project(x[None])[0, :, :words], tf.float32)
        chosen = tf.gather(logits, tf.minimum(following, words - 1), batch_dims=1)
        return tf.exp(chosen - tf.reduce_logsumexp(logits, axis=-1))

    def attend(frames, target):
        memory, mask = model.encode(frames)
        decoder = model.parts.decoder
        x = decoder.embed(decoder.read(target, frames), training=False)
        how = {"memory_attention_mask": mask, "return_attention_scores": True, "training": False}
        x, weights = model.decoder(x, memory, **how)  # [B, T, D]
        weights = named_weights(model.decoder, weights)
        chosen = [weights[f"decoder/block_{layer}/cross_attention"][:, n] for layer, n in heads]
        following = x[:, :-1], target[:, 1:]
        known = tf.map_fn(probabilities, following, fn_output_signature=tf.float32)
        return tf.cast(tf.stack(chosen, axis=1), tf.float32), known

    shape = [None, speech.max_frames, speech.num_mel_filters]
    return tf.function(attend, autograph=False).get_concrete_function(
        tf.TensorSpec(shape, tf.float32), tf.TensorSpec([None, None], tf.int32)
    )


def _mean(probabilities):
    """Returns the mean, and 0 for a word of which the decoder has no position left."""
    return float(probabilities.mean()) if len(probabilities) else 0.0


def _words(recognizer, window, weights, probabilities):
    speech = recognizer.codec.speech
    seconds = speech.conv_stride * speech.hop_length / speech.sample_rate  # of a position
    if not window.tokens:
        return ()
    has_mark = recognizer.model.config.head.rules.no_timestamps_id is not None
    before = len(window.prompt) + has_mark  # tokens before the one that predicts the text
    begins = window.begin + seconds * begins_of(weights, before)
    probabilities = probabilities[before:]  # of the text
    words, members = words_of_tokens(recognizer.codec.tokenizer, window.tokens)
    last = len(begins) - 1  # a text may fill the positions of the decoder, without its end
    return tuple(
        Word(
            round(float(begins[min(places[0], last)]), 2),
            round(float(begins[min(places[-1] + 1, last)]), 2),
            word.strip(),
            _mean(probabilities[places[0] : places[-1] + 1]),
        )
        for word, places in zip(words, members, strict=True)
    )
