"""Activations of a model on real sentences and their translations, for calibration."""

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Greedy, SearchOptions
from keras_transformer.export.parity import copy_model
from keras_transformer.layers.kernels import Kernels
from keras_transformer.tasks.strings import map_sorted

IDS = tf.TensorSpec([None, None], tf.int32)


def observe(pipeline, sentences, dense, measure) -> list:
    """Runs a model on each sentence and its translation, and returns the measurements.

    The encoder reads the sentence. The decoder reads all positions of the translation that greedy
    search finds. Neither is padded.

    Args:
        pipeline: A `Generator` with a source, whose model computes in float32.
        sentences: List of strings; empty ones are skipped.
        dense: Kernel of linear maps that records the activations; see `Kernels`.
        measure: Function of the decoder's output `[1, T, D]`, called in a graph for each sentence.
            It returns the measurements: tensors that `dense` has computed from the activations.

    Returns:
        List of the results of `measure`, one per sentence.

    Raises:
        ValueError: If all sentences are empty.
    """
    model = copy_model(pipeline.model, Kernels(dense=dense))

    @tf.function(input_signature=[IDS, IDS], autograph=False)
    def run(source, target):
        inputs = {"source": source, "target": target}
        return measure(model.hidden_states(inputs, training=False))

    results = [run(*(ids[None] for ids in pair)) for pair in _read_pairs(pipeline, sentences)]
    if not results:
        raise ValueError(f"None of the {len(sentences)} sentences holds a token to calibrate with.")
    return results


def _read_pairs(pipeline, sentences):
    """Yields the token ids that the encoder and the decoder read for each sentence, a pair."""
    config = pipeline.model.config

    @tf.function(input_signature=[IDS], autograph=False)
    def search(source):
        options = SearchOptions(cache_length=pipeline.max_length)
        return Greedy()(pipeline.model, source, options).tokens[:, 0]

    def translate(batch):
        source, _, empty = pipeline.encode(tf.constant(batch))
        return zip(source.numpy(), search(source).numpy(), empty.numpy(), strict=True)

    for source, tokens, empty in map_sorted(translate, sentences, batch_size=64):
        if not empty:
            source, tokens = (
                side[: np.count_nonzero(side != config.tokens.pad_id)] for side in (source, tokens)
            )
            yield source, np.concatenate([[config.tokens.bos_id], tokens[:-1]]).astype(np.int32)
