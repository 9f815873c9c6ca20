"""Sentences with their translations as token ids, as a decoder reads them in training."""

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import greedy_decode
from keras_transformer.tasks.strings import map_sorted

IDS = tf.TensorSpec([None, None], tf.int32)


def read_pairs(pipeline, sentences):
    """Yields pairs of the token ids that the encoder reads and those that the decoder reads.

    The decoder reads what greedy search has found. Neither is padded; empty sentences are left out.

    Args:
        pipeline: A `Translator`.
        sentences: List of strings.
    """
    config = pipeline.model.config

    @tf.function(input_signature=[IDS], autograph=False)
    def search(source):
        return greedy_decode(pipeline.model, source, pipeline.max_length)[0]

    def translate(batch):
        source, _, empty = pipeline.encode(tf.constant(batch))
        return zip(source.numpy(), search(source).numpy(), empty.numpy(), strict=True)

    for source, tokens, empty in map_sorted(translate, sentences, batch_size=64):
        if not empty:
            source, tokens = (
                side[: np.count_nonzero(side != config.pad_id)] for side in (source, tokens)
            )
            yield source, np.concatenate([[config.bos_id], tokens[:-1]]).astype(np.int32)
