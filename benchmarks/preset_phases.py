"""Training and translation with a preset of `TransformerConfig`, for `presets.py`."""

import time

import keras
import numpy as np
import tensorflow as tf
from keras_training import KerasTraining, adam
from task import EOS_ID, PAD_ID, Task

from keras_transformer import Greedy, Transformer, TransformerConfig
from keras_transformer.decoding import Constraints, SearchOptions
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.loop.objectives import RealLabels
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.tuning.adam import Adam


class Timed:
    """Measures the processor time of another object's steps."""

    def __init__(self, measured):
        self._measured, self.metadata = measured, measured.metadata

    def run(self, steps):
        """Runs `steps` steps; returns their processor time in seconds."""
        begin = time.process_time()
        self._measured.run(steps)
        return {"processor_seconds": time.process_time() - begin}


class Translating:
    """Greedy search for one sentence, with an output of maximum length."""

    def __init__(self, model, length):
        banned = np.arange(model.config.tokens.vocab_size) == EOS_ID
        self._search = tf.function(
            lambda source: (
                Greedy(length)(
                    model, source, SearchOptions(constraints=Constraints(banned=banned))
                ).tokens
            )
        )
        source = np.random.default_rng(1).integers(
            4, model.config.tokens.vocab_size, (1, length), "int32"
        )
        source[:, -1] = EOS_ID
        self._source = tf.constant(source)
        self.metadata = {"parameters": model.count_params()}

    def run(self, steps):
        """Translates the sentence `steps` times."""
        for _ in range(steps):
            self._search(self._source).numpy()
        return {}


def make(order):
    """Builds a preset for a phase, `"training"` or `"translation"`."""
    keras.utils.set_random_seed(1)
    config = TransformerConfig.preset(order["preset"], vocab_size=order["vocab_size"])
    policy = order["precision"] if order["phase"] == "training" else "float32"
    model = Transformer(config, dtype=policy)
    if order["phase"] == "translation":
        return Timed(Translating(model, order["length"]))
    learner = Learner(model, RealLabels(PAD_ID), dtype=policy)
    block = config.encoder.block
    task = Task(
        order["preset"], config.tokens.vocab_size, config.d_model, config.num_layers,
        block.attention.num_heads, block.d_ff, rows=order["batch_tokens"] // order["length"],
        length=order["length"],
    )  # fmt: skip
    learner.compile(adam(task, Adam), LabelSmoothedCrossEntropy(task.label_smoothing, PAD_ID))
    learner.optimizer.build(learner.trainable_variables)
    return Timed(KerasTraining(learner, task))
