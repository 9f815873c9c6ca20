"""`Learner`, the Keras model that `fit` and `evaluate` train and measure."""

import contextlib
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.tensors import Tensor
from keras_transformer.training.devices.keras_patches import DistributedModel
from keras_transformer.training.loop.objectives import (
    KerasObjective,
    ProjectedObjective,
    RealLabels,
)
from keras_transformer.training.losses.class_cross_entropy import ClassCrossEntropy
from keras_transformer.training.losses.consistency import twice
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy, global_sum
from keras_transformer.training.losses.flops import FollowingLoss
from keras_transformer.training.losses.teacher import DISTILLATION_WEIGHT


class Learner(DistributedModel):
    """Wrapper of a model for training; only `model` is kept afterwards.

    It is compiled and trained like any Keras model, with these differences: losses are averaged
    over the labels that count, not over batches; an update can use several batches; the labels seen
    are counted; and metrics are computed only in `evaluate`. Under a `tf.distribute` strategy,
    create it in the scope of the strategy.

    Args:
        model: A Keras model.
        weigh: Function of inputs and labels that returns the weight of each label, float32, 0 for
            padding. `None`: see `RealLabels`.
        accumulate: Number of batches in an update. Above 1, `fit` takes tuples of so many pairs
            (inputs, labels), each of any shape; the update is the same as with all their rows in
            one batch.
        consistency: A `Consistency`, such as `RDrop(5.0)` or `SimCut(3.0)`: a loss on the
            difference between two passes of a batch. An update takes twice as long with it.
            `None`: one pass.
        distillation_weight: Share of the teacher in the targets of batches that have its
            predictions; see `ProjectedObjective`.
        ctc: A `CTC`, which is added to the loss of an encoder-decoder. `None`: none.
        rounding: The `RoundedWeights` with which `fit` computes losses and gradients. `evaluate`
            and `predict` use them only within `rounded_weights`. `None`: weights are not rounded.
        dtype: Dtype policy; with `"mixed_float16"` `compile` scales the loss.
        unit: Unit of the labels in the logs: `"tokens"` or `"examples"`.
        forward: See `Training.forward`; for losses of the model's predictions.
        name: Name of the learner.

    Call arguments:
        inputs: Inputs of the model.

    Returns:
        The output of the model.
    """

    def __init__(
        self,
        model,
        weigh=None,
        accumulate=1,
        consistency=None,
        dtype=None,
        unit="tokens",
        name="learner",
        distillation_weight=DISTILLATION_WEIGHT,
        ctc=None,
        rounding=None,
        forward=None,
    ):
        super().__init__(dtype=dtype, name=name)
        self.model = model
        self.weigh = RealLabels() if weigh is None else weigh
        self.accumulate = accumulate
        self.consistency = consistency
        self.cutoff = None if consistency is None else consistency.make_cutoff()
        self.distillation_weight = distillation_weight
        self.ctc = ctc
        self.rounding = rounding
        self.forward = forward
        self.unit = unit
        # Labels seen since training began. A weight, so that it is part of every checkpoint.
        self.seen = self.add_weight(
            shape=(),
            dtype="int64",
            initializer="zeros",
            trainable=False,
            aggregation="only_first_replica",
            name=f"{unit}_seen",
        )
        self.mean_loss = keras.metrics.Mean(name="loss")  # in training
        self.evaluation_loss = keras.metrics.Mean(name="loss")
        self._evaluates = False
        # Traced once for all batches of an update, whatever their widths.
        self._gradients = tf.function(
            self._loss_and_gradients, reduce_retracing=True, autograph=False
        )

    def compile(self, optimizer, loss, metrics=None, **options) -> None:
        """Configures training, as in Keras.

        If a model has `hidden_states` and an `output_matrix`, a `LabelSmoothedCrossEntropy` without
        `metrics` is computed together with the output projection, and measured by perplexity and
        accuracy per token. Any other loss is computed from the predictions of the model, and so are
        all metrics.

        Args:
            optimizer: A Keras optimizer.
            loss: A Keras loss, its name, or a function of labels and predictions.
            metrics: List of Keras metrics or their names. `None`: see above.
            **options: Options of `keras.Model.compile`.

        Raises:
            ValueError: If the loss does not support the `consistency` or the `ctc` of the learner.
        """
        loss = keras.losses.get(loss)
        smoothed = isinstance(loss, LabelSmoothedCrossEntropy)
        projected = smoothed and metrics is None and hasattr(self.model, "hidden_states")
        if self.ctc is not None and not (projected and hasattr(self.model, "encode")):
            raise ValueError(
                "`ctc` must be None except with a LabelSmoothedCrossEntropy of an encoder-decoder, "
                f"without metrics. Received: ctc={self.ctc}."
            )
        if projected:
            objective = ProjectedObjective(
                self.model,
                loss,
                self.weigh,
                self.consistency,
                self.cutoff,
                self.distillation_weight,
                self.ctc,
            )
        elif self.cutoff is not None:
            raise ValueError(
                "`consistency` must not cut off tokens except with the loss of a model of tokens, "
                "a LabelSmoothedCrossEntropy without metrics. "
                f"Received: consistency={self.consistency}."
            )
        elif self.consistency is not None and not isinstance(loss, ClassCrossEntropy):
            raise ValueError(
                "`consistency` must be None except with the package's own cross-entropies, whose "
                f"predictions are known to be logits. Received: consistency={self.consistency}."
            )
        else:
            metrics = [keras.metrics.get(metric) for metric in metrics or ()]
            objective = KerasObjective(
                self.model, loss, self.weigh, metrics, self.consistency, self.forward
            )
        super().compile(optimizer, loss, **options)
        if isinstance(loss, FollowingLoss):
            loss.follow(self.optimizer.iterations)
        self.objective = objective

    @property
    def metrics(self) -> list[keras.Metric]:
        """Metrics that `fit` resets at the start of an epoch, and `evaluate` at its start."""
        if self._evaluates:
            return [self.evaluation_loss, *self.objective.metrics]
        return [self.mean_loss]

    def evaluate(self, *args, **options) -> Any:
        """Evaluates the model, as in Keras; the running mean of the training loss is not reset."""
        self._evaluates = True
        try:
            return super().evaluate(*args, **options)
        finally:
            self._evaluates = False

    def call(self, inputs, training=None) -> Tensor:
        return self.model(inputs, training=training)

    def train_step(self, data) -> dict[str, Any]:
        """Makes an update; logs the mean loss since its reset, and the labels seen so far."""
        batches = (data,) if self.accumulate == 1 else data
        own = tf.add_n([tf.reduce_sum(self.weigh(*batch)) for batch in batches])
        total = global_sum(own)
        loss, gradients = 0.0, None
        with self.rounded_weights():
            for inputs, labels in batches:
                batch_loss, batch_gradients = self._gradients(inputs, labels, total)
                loss += batch_loss
                gradients = (
                    batch_gradients
                    if gradients is None
                    else tf.nest.map_structure(tf.add, gradients, batch_gradients)
                )
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=True))
        self.mean_loss.update_state(global_sum(loss), sample_weight=total)
        self.seen.assign_add(tf.cast(total, "int64"))
        return {"loss": self.mean_loss.result(), self.unit: self.seen.value}

    def rounded_weights(self) -> contextlib.AbstractContextManager:
        """Returns a context manager that gives the model its rounded weights, if it has any."""
        return contextlib.nullcontext() if self.rounding is None else self.rounding.used()

    def _loss_and_gradients(self, inputs, labels, total):
        """Returns the summed loss of a batch over `total`, and gradients scaled for float16."""
        if self.consistency is not None:
            inputs, labels = twice((inputs, labels))
            total *= self.consistency.cross_entropies
        with tf.GradientTape() as tape:
            loss = self.objective.sum(inputs, labels, total, self._has_static_shapes())
            scaled = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, self.trainable_weights)
        # The gradient of an embedding is sparse and may contain a row several times; Keras's
        # optimizers would square such rows before they add them up.
        return loss, [_dense(gradient) for gradient in gradients]

    def _has_static_shapes(self):
        """Returns `True` if XLA compiles an update, so that shapes must not depend on values."""
        return self.jit_compile or isinstance(self.distribute_strategy, tf.distribute.TPUStrategy)

    def test_step(self, data) -> dict[str, Tensor]:
        """Adds one batch to the loss and the metrics."""
        loss, total = self.objective.measure(*data, self._has_static_shapes())
        mean = tf.math.divide_no_nan(loss, total)
        self.evaluation_loss.update_state(mean, sample_weight=total)
        return self.get_metrics_result()


def _dense(gradient):
    return tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient
