"""The model to train, from the settings."""

import keras
import tensorflow as tf

from keras_transformer import Transformer
from keras_transformer.training.devices.precision import dtype_policy
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.schedule import make_schedule


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
    options = settings.training
    policy = dtype_policy(options.precision)
    transformer = Transformer(config, dtype=policy)
    learner = Learner(transformer, config.pad_id, options.accumulate, options.r_drop, policy)
    schedule = make_schedule(settings.schedule, config.d_model, options.updates)
    learner.compile(
        make_optimizer(settings.optimizer, schedule, transformer.trainable_variables),
        LabelSmoothedCrossEntropy(options.label_smoothing, config.pad_id),
        jit_compile=_jit_compile(options),
    )
    learner.optimizer.build(learner.trainable_variables)
    return learner


def make_optimizer(settings, schedule, variables):
    """Returns the optimizer that `[optimizer]` describes.

    Under AdamW matrices decay alone. A bias or a layer normalisation does not, as is usual, and
    neither does a table of embeddings or positions: the rows of rare pieces would fade in all the
    updates in which no sentence has them.

    Args:
        settings: An `OptimizerSettings`.
        schedule: The learning rate.
        variables: What it will train.
    """
    options = {
        "beta_1": settings.beta_1,
        "beta_2": settings.beta_2,
        "epsilon": settings.epsilon,
        "global_clipnorm": settings.clip_norm,
        "use_ema": settings.ema_momentum is not None,
        "ema_momentum": settings.ema_momentum or 0.0,
    }
    if settings.kind == "adam":
        return keras.optimizers.Adam(schedule, **options)
    optimizer = keras.optimizers.AdamW(schedule, weight_decay=settings.weight_decay, **options)
    optimizer.exclude_from_weight_decay([v for v in variables if v.name != "kernel"])
    return optimizer


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
