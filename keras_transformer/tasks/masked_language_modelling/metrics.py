"""Scores of hidden tokens, for evaluation."""

import typing
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.masked_language_modelling.masking import hide_tokens
from keras_transformer.tasks.single_pass.result import TINY
from keras_transformer.tasks.strings import encode, map_sorted


class MaskScores(typing.NamedTuple):
    """Sums over the hidden tokens of texts.

    Attributes:
        log_probability: Sum of their log-probabilities.
        right: Number of those that are the most probable tokens at their position.
        tokens: Number of hidden tokens.
        truncated: Number of texts that were truncated.
    """

    log_probability: float
    right: int
    tokens: int
    truncated: int


def score_masks(pipeline, texts: Sequence[str], batch_size: int = 64) -> MaskScores:
    """Hides some tokens of texts, always the same ones, and returns the scores of these tokens.

    Args:
        pipeline: A `MaskFiller`. An ensemble has the mean probabilities of its models.
        texts: List of strings, in which masks are ordinary text.
        batch_size: Number of texts in a batch.
    """

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def scores(sentences):
        tokenizer = pipeline.source_tokenizer
        ids, truncated, _ = encode(tokenizer, sentences, pipeline.max_length)
        config = pipeline.model.config
        tokens, labels = hide_tokens(ids.to_tensor(tokenizer.pad_id), tokenizer, config)
        places = tf.where(tf.not_equal(labels, tokenizer.pad_id))  # [N, 2]
        shares = pipeline.probabilities(tokens, places)  # [N, V]
        hidden = tf.gather_nd(labels, places)  # [N]
        log_p = tf.math.log(tf.maximum(tf.gather(shares, hidden, batch_dims=1), TINY))
        right = tf.equal(tf.argmax(shares, axis=1, output_type=tf.int32), hidden)
        columns = (log_p, right, places[:, 0] >= 0)
        columns = tf.stack([tf.cast(x, tf.float64) for x in columns], axis=1)  # [N, 3]
        sums = tf.math.unsorted_segment_sum(columns, places[:, 0], tf.size(sentences))  # [B, 3]
        cut = tf.cast(tf.expand_dims(truncated, 1), tf.float64)
        return tf.concat([sums, cut], axis=1)  # [B, 4]

    rows = map_sorted(lambda batch: list(scores(tf.constant(batch)).numpy()), texts, batch_size)
    log_p, right, tokens, truncated = np.sum(rows, axis=0) if rows else (0.0, 0, 0, 0)
    return MaskScores(float(log_p), int(right), int(tokens), int(truncated))
