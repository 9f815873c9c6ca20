"""keras_transformer's `Transformer`, `Learner` and `LabelSmoothedCrossEntropy`."""

import keras
from keras_training import KerasTraining, adam
from task import BOS_ID, EOS_ID, PAD_ID, Task

from keras_transformer import Transformer, TransformerConfig
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.loop.objectives import RealLabels
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.tuning.adam import Adam


def make(order):
    """Builds and compiles the model.

    Attention dropout and attention biases, which the paper and our defaults do not have, are
    enabled because the layers of the other peers have both.
    """
    task = Task(**order["task"])
    keras.utils.set_random_seed(1)
    config = TransformerConfig(
        vocab_size=task.vocab_size, num_layers=task.num_layers, d_model=task.d_model,
        d_ff=task.d_ff, num_heads=task.num_heads, dropout=task.dropout,
        attention_dropout=task.dropout, attention_bias=True, max_length=task.length,
        pad_id=PAD_ID, bos_id=BOS_ID, eos_id=EOS_ID,
    )  # fmt: skip
    policy = order["precision"]
    learner = Learner(Transformer(config, dtype=policy), RealLabels(PAD_ID), dtype=policy)
    learner.compile(
        adam(task, Adam),
        LabelSmoothedCrossEntropy(task.label_smoothing, PAD_ID),
        jit_compile=task.jit_compile,
    )
    learner.optimizer.build(learner.trainable_variables)
    training = KerasTraining(learner, task)
    # Logits of padding are not computed, except in an update compiled by XLA.
    training.metadata["logits_share"] = 1.0 if task.jit_compile else task.real_share
    return training
