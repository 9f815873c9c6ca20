"""Model and optimizer, made from the settings of a run."""

from typing import Any

import keras
import tensorflow as tf

from keras_transformer.models.parts import ADAPTERS
from keras_transformer.training.devices.strategy import dtype_policy
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.loop.vectors import freeze
from keras_transformer.training.losses.consistency import Consistency
from keras_transformer.training.losses.ctc import CTC
from keras_transformer.training.losses.r_drop import RDrop
from keras_transformer.training.losses.sim_cut import SimCut
from keras_transformer.training.losses.teacher import DISTILLATION_WEIGHT
from keras_transformer.training.schedule import make_schedule
from keras_transformer.training.settings.derived import VOCABULARY
from keras_transformer.training.tuning.adam import Adam, AdamW
from keras_transformer.training.tuning.adapters import add_adapters
from keras_transformer.training.tuning.frozen import freeze_parts
from keras_transformer.training.tuning.layer_rates import (
    LayerwiseAdam,
    LayerwiseAdamW,
    layer_factors,
)
from keras_transformer.training.tuning.rounded_weights import RoundedWeights


def model_config(settings, tokenizers, **fields) -> Any:
    """Returns the configuration of a run's model.

    Args:
        settings: The `Settings` of the run.
        tokenizers: The `Tokenizers` of the run, which determine the sizes of the vocabularies and
            the special ids. `None`: the task has no text.
        **fields: Other fields that the data determine: see `Survey`.
    """
    if tokenizers is None:
        return settings.config(**fields)
    source, target = tokenizers
    if not tokenizers.shared:
        fields["target_vocab_size"] = target.vocab_size
    return settings.config(**source.config_fields, **fields)


def weightless_model(settings) -> Any:
    """Returns the model that settings describe, without values of its weights.

    Its shapes and numbers of weights can be read. For fields that only the data determine it has
    the defaults: vocabularies of the configured or the largest size, and two labels.

    Args:
        settings: The `Settings`.
    """
    size = settings.vocabulary.size or VOCABULARY
    target = {} if settings.vocabulary.shared else {"target_vocab_size": size}
    config = settings.config(vocab_size=size, **target)
    with keras.StatelessScope(initialize_variables=False):
        return settings.task.get().pipeline_class().model_class(config)


def make_learner(settings, training, make_model=None) -> Learner:
    """Returns the compiled `Learner` of a run, with built optimizer variables.

    The same settings and vocabulary always give the same initial weights.

    Args:
        settings: The `Settings` of the run.
        training: The `Training` of its task, with the configuration of the model.
        make_model: Function from a dtype policy to a Keras model, which is trained instead of the
            task's model and has the same inputs and outputs.
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
    freeze_parts(model, options.freeze or (), settings.model.parts)
    if options.lora is not None:
        add_adapters(model, options.lora, settings.model.parts)
    if not model.trainable_variables:
        raise ValueError(
            "`training.freeze` must leave weights to train. Received: "
            f"training.freeze={options.freeze}, which contain all weights of the model."
        )
    factors = _factors(model, options.layer_decay)
    learner = Learner(
        model,
        training.weigh,
        options.accumulate,
        make_consistency(options, training.config),
        policy,
        unit=task.unit,
        distillation_weight=_distillation_weight(settings),
        ctc=make_ctc(options, training.config),
        rounding=None if options.quantize is None else RoundedWeights(model, options.quantize),
        forward=None if make_model else training.forward(model),
    )
    schedule = make_schedule(settings.schedule, training.config.d_model, options.updates)
    learner.compile(
        make_optimizer(settings.optimizer, schedule, model.trainable_variables, factors),
        training.loss(options),
        training.metrics(),
        jit_compile=_jit_compile(options),
    )
    learner.optimizer.build(learner.trainable_variables)
    return learner


def make_consistency(options, config) -> Consistency | None:
    """Returns the loss on the difference between two passes, or `None` if there is one pass.

    Args:
        options: The `[training]` section.
        config: The configuration of the model. The tokens that begin and end a text are never cut
            off.
    """
    if options.simcut:
        return SimCut(
            options.simcut, options.token_cutoff, (config.tokens.bos_id, config.tokens.eos_id)
        )
    return RDrop(options.r_drop) if options.r_drop else None


def make_ctc(options, config) -> CTC | None:
    """Returns the CTC of the encoder, or `None` if its weight is 0.

    Args:
        options: The `[training]` section.
        config: The configuration of the model. Its padding is the blank.
    """
    return (
        CTC(options.ctc_weight, config.tokens.pad_id, config.tokens.eos_id)
        if options.ctc_weight
        else None
    )


def _distillation_weight(settings):
    """Returns the share of a teacher in the targets of the batches that have its predictions."""
    weight = settings.training.distillation_weight
    if weight is None:
        return DISTILLATION_WEIGHT
    if getattr(settings.data, "train_distributions", None) is None:
        raise ValueError(
            "`training.distillation_weight` has no effect without `data.train_distributions`, "
            "which `distill --word-level` writes; remove it."
        )
    return weight


def _factors(model, decay):
    """Returns the factors on the learning rates of layers, or `None` without a decay."""
    if decay is None:
        return None
    factors = layer_factors(model, decay)
    if {factors[id(variable)] for variable in model.trainable_variables} == {1.0}:
        raise ValueError(
            "`training.layer_decay` has no effect: only the head is trained, whose rate it leaves "
            f"unchanged. Received: training.layer_decay={decay}."
        )
    return factors


def make_optimizer(settings, schedule, variables, factors=None) -> keras.optimizers.Optimizer:
    """Returns the optimizer that `[optimizer]` describes.

    AdamW decays only matrices, those of adapters included. As is usual, biases and layer
    normalisations do not decay. Tables of embeddings and positions do not either: the rows of rare
    tokens would fade in the many updates in which no sentence contains them.

    Args:
        settings: An `OptimizerSettings`.
        schedule: The learning rate, a Keras schedule.
        variables: The variables to train.
        factors: Factor on the learning rate of each variable, by the identity of the variable.
            `None`: all have the same rate.
    """
    adam, adamw = Adam, AdamW
    options = {
        "beta_1": settings.beta_1,
        "beta_2": settings.beta_2,
        "epsilon": settings.epsilon,
        "global_clipnorm": settings.clip_norm,
        "use_ema": settings.ema_momentum is not None,
        "ema_momentum": settings.ema_momentum or 0.0,
    }
    if factors is not None:
        adam, adamw, options = LayerwiseAdam, LayerwiseAdamW, {**options, "factors": factors}
    if settings.kind == "adam":
        return adam(schedule, **options)
    optimizer = adamw(schedule, weight_decay=settings.weight_decay, **options)
    optimizer.exclude_from_weight_decay(
        [v for v in variables if not v.name.endswith(("kernel", *ADAPTERS))]
    )
    return optimizer


def _jit_compile(options):
    """Returns `True` if `compile` must ask XLA to compile the update; on a TPU it always does."""
    strategy = tf.distribute.get_strategy()
    if not options.jit_compile or isinstance(strategy, tf.distribute.TPUStrategy):
        return False
    if tf.distribute.has_strategy():
        raise ValueError(
            "`training.jit_compile` works on one device or on a TPU: XLA cannot compile an update "
            f"of several replicas. Received: {type(strategy).__name__}; set it to false."
        )
    return True
