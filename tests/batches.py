"""Batches of sentence pairs of different lengths, and a learner that trains on them."""

import keras
import numpy as np
import tensorflow as tf
from support import sentences

from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy

LENGTHS = [(7, 5), (2, 3), (4, 1)]  # source and target of each sentence


def batch(lengths, seed=0, width=None):
    source = sentences([s for s, _ in lengths], seed=seed)
    labels = sentences([t for _, t in lengths], seed=seed + 1, width=width)
    target = np.roll(labels, 1, axis=1)
    target[:, 0] = 2
    return {"source": source, "target": target.astype("int32")}, labels


def make_learner(model, optimizer=None, **options):
    learner = Learner(model)
    learner.compile(
        optimizer or keras.optimizers.Adam(0.01), LabelSmoothedCrossEntropy(0.1), **options
    )
    return learner


def datasets(*batches):
    """Returns a dataset of batches of different sizes."""
    specification = tf.nest.map_structure(
        lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), batches[0]
    )
    dataset = tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=specification)
    return dataset.apply(tf.data.experimental.assert_cardinality(len(batches)))
