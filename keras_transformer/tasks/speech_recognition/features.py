"""Frames of recordings as a model of speech reads them."""

import tensorflow as tf

from keras_transformer.audio.log_mel import LogMel
from keras_transformer.tensors import Tensor


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
    inside = tf.range(tf.shape(samples)[1]) < tf.expand_dims(lengths, 1)  # [B, N]
    samples = tf.where(inside, samples, 0.0)
    missing = speech.max_samples - tf.shape(samples)[1]
    samples = tf.pad(samples, [[0, 0], [0, missing]])
    return log_mel(tf.ensure_shape(samples, [None, speech.max_samples]))
