"""Static multipliers of activations, from the largest ones of real sentences."""

import re

import numpy as np
import tensorflow as tf

from keras_transformer.export.forced import IDS, read_pairs
from keras_transformer.export.parity import copy_model
from keras_transformer.layers.kernels import Kernels
from keras_transformer.pretrained.families.marian import weights_of
from keras_transformer.pretrained.files.marian.arrays import OUTPUT
from keras_transformer.pretrained.names import SAME

LARGEST = 127  # of int8
# Products whose positions the engine computes together.
AT_ONCE = re.compile("^encoder_|_context_W[kv]$")
DEVIATIONS = 1.1  # above the mean, as in the scripts of the browsers' students


def find_multipliers(pipeline, sentences):
    """Returns what the activations before each product are multiplied with.

    127 divided by the mean and 1.1 standard deviations of the largest one of each product that the
    engine computes: one for a sentence in the encoder and for the keys and values of the memory,
    one for a position of what greedy search finds in the decoder.

    Args:
        pipeline: A `Generator` whose model computes in float32.
        sentences: List of strings.

    Returns:
        Dictionary from Marian's names of the matrices, and of the output, to numbers.

    Raises:
        ValueError: If all sentences are empty.
    """
    watch = _Watch(pipeline.model)
    model = copy_model(pipeline.model, Kernels(dense=watch.dense))

    @tf.function(input_signature=[IDS, IDS], autograph=False)
    def largest(source, target):
        inputs = {"source": source, "target": target}
        hidden = model.hidden_states(inputs, training=False)
        watch.see(OUTPUT, hidden)
        return watch.seen()

    rows = [largest(*(ids[None] for ids in pair)) for pair in read_pairs(pipeline, sentences)]
    if not rows:
        raise ValueError(f"None of the {len(sentences)} sentences holds a token to calibrate with.")
    columns = zip(*rows, strict=True)
    return {
        name: LARGEST / _bound(name, column)
        for name, column in zip(watch.names, columns, strict=True)
    }


def _bound(name, rows):
    """What the largest activations of a product seldom exceed.

    Args:
        name: Marian's name of the matrix.
        rows: Largest activation of each position, `[positions]`, of each sentence.
    """
    rows = [np.asarray(row) for row in rows]
    if AT_ONCE.search(name):
        rows = [row.max(keepdims=True) for row in rows]
    largest = np.concatenate(rows)
    return (largest.mean() + DEVIATIONS * largest.std()) or 1.0


class _Watch:
    """The largest activations before the products of a model, one sentence at a time."""

    def __init__(self, model):
        config = model.config
        weights = weights_of(config, (config.vocab_size, config.output_size))
        kernels = [weight for weight in weights if weight.layout == SAME]
        self._names = {weight.variable(model).path: weight.theirs for weight in kernels}
        self._largest = {}

    @property
    def names(self):
        """Marian's names of the products, in order."""
        return [*self._names.values(), OUTPUT]

    def see(self, name, x):
        flat = tf.reshape(x, [-1, x.shape[-1]])  # [positions, features]
        self._largest[name] = tf.reduce_max(tf.abs(flat), axis=1)

    def dense(self, layer, x):
        """The kernel of linear maps; see `Kernels`."""
        if layer.kernel.path in self._names:
            self.see(self._names[layer.kernel.path], x)
        return layer(x)

    def seen(self):
        """Returns the largest activations of all products, in the order of `names`."""
        return [self._largest[name] for name in self.names]
