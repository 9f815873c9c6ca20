"""A model and how it learns, as `fit` and `evaluate` see it."""

import keras
import tensorflow as tf

from keras_transformer.training.devices.keras_patches import DistributedModel
from keras_transformer.training.loop.objectives import (
    KerasObjective,
    ProjectedObjective,
    RealLabels,
)
from keras_transformer.training.losses.class_cross_entropy import ClassCrossEntropy
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy, global_sum
from keras_transformer.training.losses.r_drop import twice


class Learner(DistributedModel):
    """Wraps a model for training; what is kept afterwards is `model`.

    `compile` and `fit` are Keras'. What is added: losses are averaged over the labels that count,
    not over batches; an update can take several batches; the labels seen are counted; metrics are
    computed in `evaluate` alone. Under a `tf.distribute` strategy create it in the strategy's
    scope.

    Args:
        model: A Keras model.
        weigh: Function of inputs and labels to how much each label counts, float32, 0 for padding.
            `None`: see `RealLabels`.
        accumulate: Batches of an update. Above 1, `fit` takes tuples of so many pairs (inputs,
            labels), each of any shape; the update is that of all their rows in one batch.
        r_drop: How much it counts that two passes of a batch, made different by dropout, predict
            the same; 5 in R-Drop's paper, for translation. Above 0 an update costs twice as much,
            and the training's loss is the mean of both passes, with their disagreement.
        dtype: Dtype policy; under `"mixed_float16"` `compile` scales the loss.
        unit: What is counted, in the logs: `"tokens"` or `"examples"`.
        name: Name of the learner.

    Call arguments:
        inputs: What the model takes.

    Returns:
        What the model returns.
    """

    def __init__(
        self,
        model,
        weigh=None,
        accumulate=1,
        r_drop=0.0,
        dtype=None,
        unit="tokens",
        name="learner",
    ):
        super().__init__(dtype=dtype, name=name)
        self.model = model
        self.weigh = RealLabels() if weigh is None else weigh
        self.accumulate = accumulate
        self.r_drop = r_drop
        self.unit = unit
        # Labels that counted in the whole training. A weight, so that checkpoints carry it.
        self.seen = self.add_weight(
            shape=(),
            dtype="int64",
            initializer="zeros",
            trainable=False,
            aggregation="only_first_replica",
            name=f"{unit}_seen",
        )
        self.mean_loss = keras.metrics.Mean(name="loss")  # of the training
        self.evaluation_loss = keras.metrics.Mean(name="loss")
        self._evaluates = False
        # Traced once for all batches of an update and all their widths.
        self._gradients = tf.function(
            self._loss_and_gradients, reduce_retracing=True, autograph=False
        )

    def compile(self, optimizer, loss, metrics=None, **options):
        """As in Keras.

        A `LabelSmoothedCrossEntropy` without `metrics` is computed together with the output product
        of a model that has `hidden_states` and an `output_matrix`, and measured by perplexity and
        accuracy per token. Any other loss is computed from what the model predicts, and so are all
        metrics.

        Args:
            optimizer: A Keras optimizer.
            loss: A Keras loss, its name, or a function of labels and predictions.
            metrics: List of Keras metrics or their names. `None`: see above.
            **options: Those of `keras.Model.compile`.

        Raises:
            ValueError: If there is an `r_drop` that the loss cannot take into account.
        """
        loss = keras.losses.get(loss)
        smoothed = isinstance(loss, LabelSmoothedCrossEntropy)
        if smoothed and metrics is None and hasattr(self.model, "hidden_states"):
            objective = ProjectedObjective(self.model, loss, self.weigh, self.r_drop)
        elif self.r_drop and not isinstance(loss, ClassCrossEntropy):
            raise ValueError(
                "`r_drop` must be 0 but for the package's own cross-entropies, whose predictions "
                f"are known to be logits. Received: r_drop={self.r_drop}."
            )
        else:
            metrics = [keras.metrics.get(metric) for metric in metrics or ()]
            objective = KerasObjective(self.model, loss, self.weigh, metrics, self.r_drop)
        super().compile(optimizer, loss, **options)
        self.objective = objective

    @property
    def metrics(self):
        """What `fit` resets at the start of an epoch, or `evaluate` at its start."""
        if self._evaluates:
            return [self.evaluation_loss, *self.objective.metrics]
        return [self.mean_loss]

    def evaluate(self, *args, **options):
        """As in Keras; what is known of the training's loss stays as it is."""
        self._evaluates = True
        try:
            return super().evaluate(*args, **options)
        finally:
            self._evaluates = False

    def call(self, inputs, training=None):
        return self.model(inputs, training=training)

    def train_step(self, data):
        """One update. Logs the loss since `mean_loss` was reset and the labels seen so far."""
        batches = (data,) if self.accumulate == 1 else data
        own = tf.add_n([tf.reduce_sum(self.weigh(*batch)) for batch in batches])
        total = global_sum(own)
        loss, gradients = 0.0, None
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

    def _loss_and_gradients(self, inputs, labels, total):
        """Returns a batch's summed loss over `total`, and its gradients, scaled for float16."""
        if self.r_drop:
            inputs, labels = twice((inputs, labels))
            total *= 2
        with tf.GradientTape() as tape:
            loss = self.objective.sum(inputs, labels, total, self._has_static_shapes())
            scaled = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, self.trainable_weights)
        # Of a table that is only looked up the gradient is rows, some of them repeated, whose
        # squares Keras's optimizers would not add up as they must.
        return loss, [_dense(gradient) for gradient in gradients]

    def _has_static_shapes(self):
        """Whether XLA compiles an update: the shape of a tensor may not depend on values."""
        return self.jit_compile or isinstance(self.distribute_strategy, tf.distribute.TPUStrategy)

    def test_step(self, data):
        """Adds one batch to the loss and the metrics."""
        loss, total = self.objective.measure(*data, self._has_static_shapes())
        mean = tf.math.divide_no_nan(loss, total)
        self.evaluation_loss.update_state(mean, sample_weight=total)
        return self.get_metrics_result()


def _dense(gradient):
    return tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient
