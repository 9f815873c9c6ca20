"""The model to train, from the settings."""

import keras
import tensorflow as tf

from keras_transformer import Transformer

from .learner import Learner
from .loss import LabelSmoothedCrossEntropy
from .precision import dtype_policy
from .schedule import make_schedule


def model_config(settings, tokenizer):
    """Returns the `TransformerConfig` of a run: its settings, and the vocabulary's size and ids."""
    return settings.model.config(
        vocab_size=tokenizer.vocab_size,
        pad_id=tokenizer.pad_id,
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
    )


def make_learner(settings, tokenizer):
    """Returns the model to train, compiled, with the optimizer's variables made.

    The same settings and vocabulary give the same weights every time.
    """
    keras.utils.set_random_seed(settings.training.seed)
    config = model_config(settings, tokenizer)
    options, adam = settings.training, settings.optimizer
    policy = dtype_policy(options.precision)
    transformer = Transformer(config, dtype=policy)
    learner = Learner(transformer, config.pad_id, options.accumulate, options.r_drop, policy)
    learner.compile(
        keras.optimizers.Adam(
            make_schedule(settings.schedule, config.d_model, options.updates),
            beta_1=adam.beta_1,
            beta_2=adam.beta_2,
            epsilon=adam.epsilon,
            global_clipnorm=adam.clip_norm,
            use_ema=adam.ema_momentum is not None,
            ema_momentum=adam.ema_momentum or 0.0,
        ),
        LabelSmoothedCrossEntropy(options.label_smoothing, config.pad_id),
        jit_compile=_jit_compile(options),
    )
    learner.optimizer.build(learner.trainable_variables)
    return learner


def _jit_compile(options):
    """Whether XLA is to compile the update; on a TPU it does so in any case."""
    strategy = tf.distribute.get_strategy()
    if not options.jit_compile or isinstance(strategy, tf.distribute.TPUStrategy):
        return False
    if tf.distribute.has_strategy():
        raise ValueError(
            "`training.jit_compile` works on one device or on a TPU: XLA cannot compile what "
            f"several replicas do together. Received: {type(strategy).__name__}; set it to false."
        )
    return True
