"""Segments in the outputs of a model: texts between two timestamps."""

import tensorflow as tf

from keras_transformer.tasks.speech_recognition.segments import Segment
from keras_transformer.tensors import Tensor


def segments_in(tokens, first, step, seconds, tokenizer) -> dict[str, Tensor]:
    """Returns the segments of outputs, in a graph.

    Timestamps come in pairs, see `Timestamps`; the last segment may have no end, and then ends with
    the recording. No time is later than the end of the recording: a model whose recordings are
    padded with silence, such as Whisper, may emit timestamps of the silence.

    Args:
        tokens: Token ids `[B, L]`. Rows without timestamps have no segments.
        first: Id of the first timestamp. The timestamps are the last ids.
        step: Time between two timestamps, in seconds.
        seconds: Lengths of the recordings in seconds, `[B]`.
        tokenizer: The `Tokenizer` of outputs, whose texts have no timestamps.

    Returns:
        Dictionary of `segment_starts` and `segment_ends` in seconds, float32 `[B, K]`, and
        `segment_texts`, string `[B, K]`. Rows with fewer than K segments are filled with -1 and
        empty texts.
    """
    is_time = tokens >= first  # [B, L]
    order = tf.cumsum(tf.cast(is_time, tf.int32), axis=1)  # number of timestamps until here
    most = tf.reduce_max((order + 1) // 2)  # K
    numbers = tf.reshape(tf.range(most), [1, -1, 1])  # [1, K, 1]
    order, is_time = tf.expand_dims(order, 1), tf.expand_dims(is_time, 1)  # [B, 1, L]
    tokens = tf.expand_dims(tokens, 1)

    def time_of(place):
        here = is_time & tf.equal(order, place)  # [B, K, L]
        ids = tf.reduce_max(tf.where(here, tokens - first, -1), axis=2)  # [B, K]
        return tf.where(ids < 0, -1.0, step * tf.cast(ids, tf.float32))

    seconds = tf.expand_dims(seconds, 1)  # [B, 1]
    starts, ends = time_of(2 * numbers + 1), time_of(2 * numbers + 2)
    ends = tf.where((ends < 0) & (starts >= 0), seconds, ends)
    starts, ends = tf.minimum(starts, seconds), tf.minimum(ends, seconds)
    of_segment = ~is_time & (order > 0) & tf.equal((order - 1) // 2, numbers)  # [B, K, L]
    texts = tf.where(of_segment, tokens, tokenizer.pad_id)
    texts = tokenizer.decode(tf.reshape(texts, [-1, tf.shape(tokens)[2]]))  # [B * K]
    texts = tf.reshape(tf.strings.strip(texts), tf.shape(starts))
    return {"segment_starts": starts, "segment_ends": ends, "segment_texts": texts}


def read_segments(answers) -> list[tuple[Segment, ...]] | None:
    """Returns the segments of each row of a result of `segments_in`, in arrays.

    Segments with neither text nor duration are left out. Returns `None` if the arrays are missing.
    """
    if "segment_starts" not in answers:
        return None
    columns = (answers[f"segment_{name}"] for name in ("starts", "ends", "texts"))
    return [
        tuple(
            Segment(round(float(start), 2), round(float(end), 2), text.decode("utf-8", "replace"))
            for start, end, text in zip(*row, strict=True)
            if start >= 0 and (text or start < end)
        )
        for row in zip(*columns, strict=True)
    ]
