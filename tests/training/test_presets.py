"""An update of every row of Table 3 compiles with XLA, in place of a test on a TPU."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import in_own_process, sentences

from keras_transformer import Transformer, TransformerConfig
from keras_transformer.models import PRESETS
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy


def presets_of_one_layer():
    """Returns the presets with one layer per stack, without duplicates."""
    rows = {}
    for name in PRESETS:
        config = TransformerConfig.preset(name, vocab_size=60, max_length=16)
        one = dataclasses.replace(config, num_layers=1, num_decoder_layers=None)
        rows.setdefault(one, name)
    return {name: config for config, name in rows.items()}


ROWS = presets_of_one_layer()


def test_only_rows_that_differ_in_depth_or_in_the_loss_are_left_out():
    left_out = set(PRESETS) - set(ROWS)
    assert left_out == {name for name in PRESETS if name.startswith(("c_layers", "d_label"))}


@pytest.mark.long
@pytest.mark.slow
def test_an_update_compiles_for_static_shapes(name="student_base_memory"):
    update(ROWS[name])


@pytest.mark.slow
@pytest.mark.long
def test_an_update_of_several_layers_compiles():
    """Three layers, so that one of them is both preceded and followed by another."""
    config = TransformerConfig.preset("base", vocab_size=60, max_length=16)
    in_own_process(update, dataclasses.replace(config, num_layers=3, num_decoder_layers=None))


def update(config):
    learner = Learner(Transformer(config))
    learner.compile(keras.optimizers.Adam(1e-3), LabelSmoothedCrossEntropy(0.1), jit_compile=True)
    learner.optimizer.build(learner.trainable_variables)
    labels = sentences([7, 3], seed=1, width=8)
    target = np.roll(labels, 1, axis=1)
    data = {"source": sentences([8, 5], width=8), "target": target.astype("int32")}, labels
    before = learner.model.output_matrix.numpy()
    step = tf.function(learner.train_step, jit_compile=True)
    figures = step(tf.nest.map_structure(tf.constant, data))
    assert 0 < figures["loss"] < 100 and figures["tokens"] == 10
    after = learner.model.output_matrix.numpy()
    assert np.isfinite(after).all() and np.abs(after - before).max() > 1e-4
