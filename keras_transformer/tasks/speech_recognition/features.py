"""Frames of recordings as a model of speech reads them."""

import numpy as np
import tensorflow as tf

from keras_transformer.never import never
from keras_transformer.tasks.speech_recognition.audio.log_mel import LogMel
from keras_transformer.tensors import Tensor

BLOCK = 256  # samples
CHUNK = 12_000  # frames that are computed at a time, two minutes


def frames_of(speech, samples, lengths) -> Tensor:
    """Returns the frames of recordings, in a graph.

    Args:
        speech: A `SpeechInput`.
        samples: Samples from -1 to 1, float32 `[B, N]`.
        lengths: Number of samples of each recording, at most N and at most `max_samples`, int32
            `[B]`.

    Returns:
        float32 `[B, S, F]`, with zeros after the end of a recording; with `pad_to_max_seconds`,
        the frames of the recording followed by silence, S = `max_frames`.
    """
    log_mel = LogMel(**speech.features)
    if not speech.pad_to_max_seconds:
        return log_mel(samples, lengths)
    samples = samples[:, : speech.max_samples]
    samples = within(samples, lengths)
    missing = speech.max_samples - tf.shape(samples)[1]
    samples = tf.pad(samples, [[0, 0], [0, missing]])
    return log_mel(tf.ensure_shape(samples, [None, speech.max_samples]))


def frames_of_recording(speech, samples) -> np.ndarray:
    """Returns the frames of a recording of any length, float32 `[T, F]`.

    They are those of `LogMel` for the recording as a whole, whose loudest frame is the scale of all
    others, in less memory.

    Args:
        speech: A `SpeechInput`.
        samples: Samples from -1 to 1, float32 `[N]`.
    """
    log_mel, hop = LogMel(**speech.features), speech.hop_length
    count, margin = len(samples) // hop, -(-speech.window_length // hop)  # frames
    chunks = []
    for begin in range(0, count, CHUNK):
        first, end = max(0, begin - margin), min(count, begin + CHUNK)
        # The last chunk has the rest of the samples, which the frames at the end reflect.
        stop = len(samples) if end + margin >= count else (end + margin) * hop
        decades = log_mel.decades(samples[None, first * hop : stop])[0]
        chunks.append(decades[begin - first : end - first].numpy())
    return log_mel.scaled(np.concatenate(chunks)[None])[0].numpy()


def within(samples, lengths) -> Tensor:
    """Returns samples `[B, N]` with zeros after the end of each recording, lengths `[B]`."""
    inside = tf.expand_dims(_numbers(samples), 0) < tf.expand_dims(lengths, 1)  # [B, N]
    return tf.where(inside, samples, 0.0)


def _numbers(samples):
    """Returns the numbers of the samples of a row, int32 `[N]`.

    If N is known, they are sums, of which a file need not store every one.
    """
    size = samples.shape[1]
    if size is None or size < BLOCK:
        return tf.range(tf.shape(samples)[1])
    whole = size - size % BLOCK
    blocks = tf.expand_dims(tf.range(0, whole, BLOCK) + never(samples), 1) + tf.range(BLOCK)
    numbers = tf.reshape(blocks, [whole])
    # Not a slice of one more block, which takes ten times as long in LiteRT.
    return numbers if whole == size else tf.concat([numbers, tf.range(whole, size)], axis=0)
