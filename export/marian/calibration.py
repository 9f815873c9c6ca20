"""Static multipliers of activations, found from the largest activations of real sentences."""

import re
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.export.activations import observe
from keras_transformer.pretrained.files.marian.arrays import OUTPUT
from keras_transformer.pretrained.files.marian.weights import weights_of
from keras_transformer.pretrained.names import SAME

LARGEST = 127  # of int8
# Products that the engine computes for all positions of a sentence together.
AT_ONCE = re.compile("^encoder_|_context_W[kv]$")
DEVIATIONS = 1.1  # standard deviations above the mean, as in the scripts for the browsers' students


def find_multipliers(pipeline, sentences) -> dict[Any, float]:
    """Returns the multipliers that scale the activations before each product to int8.

    A multiplier is 127 divided by the mean plus 1.1 standard deviations of the largest activations.
    There is one largest activation for each product that the engine computes. In the encoder, and
    in the keys and values of cross-attention, this is one for each sentence. Elsewhere in the
    decoder it is one for each position of the output of greedy search.

    Args:
        pipeline: A `Generator` whose model computes in float32.
        sentences: List of strings.

    Returns:
        Dictionary from Marian's names of the matrices, including the output matrix, to numbers.

    Raises:
        ValueError: If all sentences are empty.
    """
    config, largest = pipeline.model.config, {}
    weights = weights_of(config, (config.tokens.vocab_size, config.output_size))
    kernels = [weight for weight in weights if weight.layout == SAME]
    names = {weight.variable(pipeline.model).path: weight.theirs for weight in kernels}
    products = [*names.values(), OUTPUT]  # in order

    def see(name, x):
        flat = tf.reshape(x, [-1, x.shape[-1]])  # [positions, features]
        largest[name] = tf.reduce_max(tf.abs(flat), axis=1)

    def dense(layer, x):
        if layer.kernel.path in names:
            see(names[layer.kernel.path], x)
        return layer(x)

    def measured(hidden):
        see(OUTPUT, hidden)
        return [largest[name] for name in products]

    columns = zip(*observe(pipeline, sentences, dense, measured), strict=True)
    return {
        name: LARGEST / _bound(name, column) for name, column in zip(products, columns, strict=True)
    }


def _bound(name, rows):
    """Returns a bound that the activations of a product seldom exceed.

    Args:
        name: Marian's name of the matrix.
        rows: For each sentence, the largest activation of each position, `[positions]`.
    """
    rows = [np.asarray(row) for row in rows]
    if AT_ONCE.search(name):
        rows = [row.max(keepdims=True) for row in rows]
    largest = np.concatenate(rows)
    return (largest.mean() + DEVIATIONS * largest.std()) or 1.0
