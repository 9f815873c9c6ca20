"""Objectives: the loss that an update lowers, how it is computed, and the metrics beside it."""

import keras
import tensorflow as tf

from keras_transformer.training.losses.cross_entropy import global_sum
from keras_transformer.training.losses.metrics import Perplexity, TokenAccuracy
from keras_transformer.training.losses.projected import projected_cross_entropy, projected_metrics
from keras_transformer.training.losses.r_drop import disagreement


class RealLabels:
    """Weights of labels: 1 for those that are not padding.

    Args:
        pad_id: Label of positions that do not count.

    Call arguments:
        inputs: What the model takes.
        labels: Integers.

    Returns:
        float32, of the shape of `labels`.
    """

    def __init__(self, pad_id=0):
        self.pad_id = pad_id

    def __call__(self, inputs, labels):
        return tf.cast(tf.not_equal(labels, self.pad_id), tf.float32)


class ProjectedObjective:
    """Smoothed cross-entropy of a model whose logits never exist whole.

    The logits of a training batch are never in memory as a whole, and those of padding are not
    computed unless the shapes must be static.

    Args:
        model: A model with `hidden_states`, `output_matrix` and `output_bias`, such as a
            `Transformer`.
        loss: A `LabelSmoothedCrossEntropy`.
        weigh: Function of inputs and labels to weights of the labels, 0 for those of padding.
        r_drop: See `projected_cross_entropy`.
    """

    def __init__(self, model, loss, weigh, r_drop=0.0):
        self.model, self.loss, self.weigh, self.r_drop = model, loss, weigh, r_drop
        self.metrics = [Perplexity(loss.pad_id), TokenAccuracy(loss.pad_id)]

    def sum(self, inputs, labels, total, static):
        """Returns the losses of a batch, summed and divided by `total`.

        Args:
            inputs, labels: The batch; with R-Drop both of its passes.
            total: What to divide by, a scalar.
            static: Whether shapes must not depend on values.
        """
        hidden, labels, weights = self._hidden(inputs, labels, static, training=True)
        return projected_cross_entropy(
            hidden,
            tf.cast(self.model.output_matrix, hidden.dtype),
            labels,
            tf.math.divide_no_nan(weights, total),
            self.loss.label_smoothing,
            self.r_drop,
            self._bias(),
        )

    def measure(self, inputs, labels, static):
        """Adds a batch to the metrics; returns its summed loss and the sum of its weights."""
        hidden, labels, weights = self._hidden(inputs, labels, static, training=False)
        sums = projected_metrics(
            hidden,
            tf.cast(self.model.output_matrix, hidden.dtype),
            labels,
            weights,
            self.loss.label_smoothing,
            self._bias(),
        )
        loss, *sums, total = global_sum([*sums, tf.reduce_sum(weights)])
        for metric, value in zip(self.metrics, sums, strict=True):
            # Of `Mean`: the perplexity is the exponential of one.
            mean = tf.math.divide_no_nan(value, total)
            keras.metrics.Mean.update_state(metric, mean, sample_weight=total)
        return loss, total

    def _bias(self):
        bias = self.model.output_bias
        return None if bias is None else tf.cast(bias, tf.float32)

    def _hidden(self, inputs, labels, static, training):
        """The last hidden states, the labels and their weights, `[N, D]`, `[N]` and `[N]`.

        Those of real positions alone; of all, padding included, where shapes are static.
        """
        weights = tf.reshape(self.weigh(inputs, labels), [-1])  # [B * T]
        labels = tf.reshape(labels, [-1])  # [B * T]
        hidden = self.model.hidden_states(inputs, training=training)  # [B, T, D]
        hidden = tf.reshape(hidden, [-1, hidden.shape[-1]])  # [B * T, D]
        if static:
            return hidden, labels, weights
        real = tf.where(weights > 0)[:, 0]  # [N]
        return tuple(tf.gather(values, real) for values in (hidden, labels, weights))


class KerasObjective:
    """Any Keras loss with any Keras metrics.

    Losses are averaged over all labels with a weight, not over batches or replicas: what the loss's
    own reduction would do is left out.

    Args:
        model: A Keras model.
        loss: A Keras loss, or a function of labels and predictions to losses of the labels.
        weigh: Function of inputs and labels to weights of the labels.
        metrics: List of Keras metrics, which get these weights.
        r_drop: Weight of the `disagreement` of two passes, for a loss of logits; see
            `projected_cross_entropy`.
    """

    def __init__(self, model, loss, weigh, metrics=(), r_drop=0.0):
        self.model, self.weigh, self.metrics = model, weigh, list(metrics)
        self.r_drop = r_drop
        self._losses = loss.call if isinstance(loss, keras.losses.Loss) else loss
        self._name = getattr(loss, "name", None) or getattr(loss, "__name__", str(loss))

    def sum(self, inputs, labels, total, static):
        """Returns the losses of a batch, summed and divided by `total`."""
        predictions = self.model(inputs, training=True)
        losses, weights = self._weighted(inputs, labels, predictions)
        if self.r_drop:
            log_p = tf.nn.log_softmax(tf.cast(predictions, tf.float32))  # [2 * B, C]
            losses += self.r_drop / 2 * disagreement(tf.exp(log_p), log_p)[0]
        return tf.math.divide_no_nan(tf.reduce_sum(losses * weights), total)

    def measure(self, inputs, labels, static):
        """Adds a batch to the metrics; returns its summed loss and the sum of its weights."""
        predictions = self.model(inputs, training=False)
        losses, weights = self._weighted(inputs, labels, predictions)
        for metric in self.metrics:
            metric.update_state(labels, predictions, sample_weight=weights)
        return global_sum([tf.reduce_sum(losses * weights), tf.reduce_sum(weights)])

    def _weighted(self, inputs, labels, predictions):
        """The losses and the weights of all labels, both `[...]` as the labels are."""
        weights = self.weigh(inputs, labels)
        losses = tf.cast(self._losses(labels, predictions), tf.float32)
        if losses.shape.rank != weights.shape.rank:
            raise ValueError(
                f"`loss` must give a loss for each label, of rank {weights.shape.rank}. Received: "
                f"{self._name}, which gives rank {losses.shape.rank}."
            )
        return losses, weights
