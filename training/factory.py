"""The model to train, from the settings."""

import keras
import tensorflow as tf

from keras_transformer.training.devices.precision import dtype_policy
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.loop.vectors import freeze
from keras_transformer.training.schedule import make_schedule
from keras_transformer.training.settings.derived import VOCABULARY


def model_config(settings, tokenizers, **fields):
    """Returns the configuration of a run's model.

    Args:
        settings: The `Settings` of the run.
        tokenizers: Its `Tokenizers`, which decide the sizes of the vocabularies and special ids, or
            `None`.
        **fields: What else the data decide: see `Survey`.
    """
    if tokenizers is None:
        return settings.config(**fields)
    source, target = tokenizers
    if not tokenizers.shared:
        fields["target_vocab_size"] = target.vocab_size
    return settings.config(
        vocab_size=source.vocab_size,
        pad_id=source.pad_id,
        bos_id=source.bos_id,
        eos_id=source.eos_id,
        **fields,
    )


def weightless_model(settings):
    """Returns the model that a configuration describes, without values of its weights.

    Its shapes and numbers of weights can be read. What only the data decide is taken from the
    configuration: vocabularies are as large as they may become, and labels are two.

    Args:
        settings: The `Settings`.
    """
    size = settings.vocabulary.size or VOCABULARY
    target = {} if settings.vocabulary.shared else {"target_vocab_size": size}
    config = settings.config(vocab_size=size, **target)
    with keras.StatelessScope(initialize_variables=False):
        return settings.task.get().pipeline_class().model_class(config)


def make_learner(settings, training, make_model=None):
    """Returns the model to train, compiled, with the optimizer's variables made.

    The same settings and vocabulary give the same weights every time.

    Args:
        settings: The `Settings` of the run.
        training: The `Training` of its task, with the configuration of the model.
        make_model: Function of a dtype policy to another Keras model of the same inputs and
            outputs, to train in the place of the task's.
    """
    keras.utils.set_random_seed(settings.training.seed)
    options, task = settings.training, settings.task.get()
    policy = dtype_policy(options.precision)
    if make_model is None:
        model = task.pipeline_class().model_class(training.config, dtype=policy)
    else:
        model = make_model(policy)
    if settings.model.freeze_vectors:
        freeze(model)
    learner = Learner(
        model, training.weigh, options.accumulate, options.r_drop, policy, unit=task.unit
    )
    schedule = make_schedule(settings.schedule, training.config.d_model, options.updates)
    learner.compile(
        make_optimizer(settings.optimizer, schedule, model.trainable_variables),
        training.loss(options),
        training.metrics(),
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
