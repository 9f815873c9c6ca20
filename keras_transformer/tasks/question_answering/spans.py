"""The best answer in a passage from the logits of its windows, in a graph."""

import tensorflow as tf

from keras_transformer.tasks.question_answering.head import OUTSIDE
from keras_transformer.tensors import Tensor


def segments_of_rows(rest, length) -> Tensor:
    """Returns the segment that begins with each token of a row, -1 if none does, `[R, S]`.

    Args:
        rest: Second result of `AnswerCodec.encode`.
        length: Number S of tokens in a row.
    """
    segment, example = rest["segment"], rest["example"]  # [B, P], [R]
    token = tf.range(tf.cast(length, tf.int64))  # [S]
    place = token + tf.expand_dims(rest["shift"], 1)  # [R, S]
    size = tf.shape(segment, tf.int64)[1]
    after = token >= tf.expand_dims(rest["prefix"], 1)
    inside = after & (token < tf.expand_dims(rest["eos"], 1))  # [R, S]
    padded = tf.pad(segment, [[0, 0], [0, 1]], constant_values=-1)
    row = tf.gather(padded, example)  # [R, P + 1]
    return tf.gather(row, tf.where(inside, place, size), batch_dims=1)


def log_probabilities(logits, segment, rest) -> Tensor:
    """Returns the log-probability of each token of a row, `[R, S]`.

    The probabilities of the row's segments and of its `bos_id` add up to 1. The `bos_id` stands for
    an answer that is not in this window.

    Args:
        logits: `[R, S]`.
        segment: See `segments_of_rows`.
        rest: Second result of `AnswerCodec.encode`.

    Returns:
        `[R, S]`, `OUTSIDE` where no segment begins.
    """
    kept = possible(logits, segment, rest)
    return tf.where(segment >= 0, tf.nn.log_softmax(kept), OUTSIDE)


def possible(logits, segment, rest) -> Tensor:
    """Returns logits `[R, S]` in which all but a row's segments and its `bos_id` are `OUTSIDE`.

    Args:
        logits, segment, rest: See `log_probabilities`.
    """
    none = tf.expand_dims(rest["none"], 1)  # [R, 1]
    place = tf.range(tf.shape(logits, tf.int64)[1])
    return tf.where((segment >= 0) | tf.equal(place, none), logits, OUTSIDE)


def of_no_answer(start, end, segment, rest) -> Tensor:
    """Returns the probability that no window contains an answer, `[B]`.

    In a window it is the product of the probabilities of `bos_id` as both ends, and in a passage
    the smallest of its windows, as in Hugging Face's pipeline.

    Args:
        start, end: Logits `[R, S]`.
        segment: See `segments_of_rows`.
        rest: Second result of `AnswerCodec.encode`.
    """
    places = tf.expand_dims(rest["none"], 1)  # [R, 1]
    of_window = tf.ones_like(start[:, 0])  # [R]
    for logits in (start, end):
        log_p = tf.nn.log_softmax(possible(logits, segment, rest))
        of_window *= tf.exp(tf.gather(log_p, places, batch_dims=1)[:, 0])
    return tf.math.unsorted_segment_min(of_window, rest["example"], tf.size(rest["count"]))


def best_of_windows(start, end, segment, rest, max_answer) -> tuple[Tensor, Tensor]:
    """Returns the best answer to each example, and its probability.

    Args:
        start, end: Log-probabilities `[R, S]`, `OUTSIDE` where no segment begins.
        segment: See `segments_of_rows`.
        rest: Second result of `AnswerCodec.encode`.
        max_answer: Maximum length of an answer in tokens.

    Returns:
        A pair of the first and the last segment of the answers, `[B]` each; and the product of
        their probabilities in the window in which it is largest, `[B]`.
    """
    length = tf.shape(start)[1]
    padded = tf.pad(end, [[0, 0], [0, max_answer]], constant_values=2 * OUTSIDE)
    ends = tf.stack([padded[:, k : k + length] for k in range(max_answer)], axis=2)  # [R, S, L]
    sums = tf.reshape(tf.expand_dims(start, 2) + ends, [tf.shape(start)[0], -1])  # [R, S * L]
    place = tf.argmax(sums, axis=1, output_type=tf.int32)  # [R]
    best = tf.reduce_max(sums, axis=1)  # [R]
    of_example = tf.RaggedTensor.from_value_rowids(
        best, rest["example"], tf.size(rest["count"], tf.int64), validate=False
    )
    window = tf.argmax(of_example.to_tensor(4 * OUTSIDE), axis=1)  # [B]
    row = of_example.row_splits[:-1] + window
    place = tf.gather(place, row)  # [B]
    first, steps = place // max_answer, place % max_answer
    last = tf.minimum(first + steps, length - 1)
    of_row = tf.gather(segment, row)  # [B, S]
    ends = tuple(tf.maximum(at(of_row, token), 0) for token in (first, last))
    return ends, tf.exp(tf.gather(best, row))


def of_segments(log_p, segment, rest) -> Tensor:
    """Returns the largest probability of each segment over all windows, `[B, G]`.

    Args:
        log_p: See `log_probabilities`.
        segment: See `segments_of_rows`.
        rest: Second result of `AnswerCodec.encode`.
    """
    examples, example = tf.size(rest["count"]), tf.cast(rest["example"], tf.int32)
    size = tf.shape(rest["begins"])[1]
    place = tf.expand_dims(example * size, 1) + segment  # [R, S]
    place = tf.where(segment >= 0, place, -1)
    best = tf.math.unsorted_segment_max(tf.exp(log_p), place, examples * size)
    # The maximum of a segment without values is the lowest float.
    return tf.reshape(tf.maximum(best, 0.0), [examples, size])


def at(values, place) -> Tensor:
    """Returns the value of each row `[B, N]` at an index `[B]`; 0 for rows without values."""
    padded = tf.pad(values, [[0, 0], [0, 1]])
    return tf.gather(padded, place, batch_dims=1)
