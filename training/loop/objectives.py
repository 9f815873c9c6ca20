"""Objectives: training losses, with the metrics of their validations."""

from typing import Any

import keras
import tensorflow as tf

from keras_transformer.tensors import Tensor
from keras_transformer.training.losses.cross_entropy import global_sum
from keras_transformer.training.losses.metrics import Perplexity, TokenAccuracy
from keras_transformer.training.losses.projected import projected_cross_entropy, projected_metrics
from keras_transformer.training.losses.teacher import (
    DISTILLATION_WEIGHT,
    teacher_shares,
    without_teacher,
)


class RealLabels:
    """Weights of labels, 1 except for padding.

    Args:
        pad_id: Label of positions that do not count.

    Call arguments:
        inputs: Inputs of the model; ignored.
        labels: Integers.

    Returns:
        float32, in the shape of `labels`.
    """

    def __init__(self, pad_id=0):
        self.pad_id = pad_id

    def __call__(self, inputs, labels) -> Tensor:
        return tf.cast(tf.not_equal(labels, self.pad_id), tf.float32)


class ProjectedObjective:
    """Smoothed cross-entropy, computed together with the output projection of a model.

    The logits of a batch are never in memory all at once, and those of padding are not computed
    unless shapes must be static.

    Args:
        model: A model with `hidden_states`, `output_matrix` and `output_bias`, such as a
            `Transformer`.
        loss: A `LabelSmoothedCrossEntropy`.
        weigh: Function of inputs and labels that returns the weights of the labels, 0 for padding.
        consistency: See `projected_cross_entropy`.
        cutoff: Function that chooses the embeddings that the model keeps in training: see
            `Transformer.hidden_states`. `None`: all.
        distillation_weight: Share of a teacher in the targets of batches that have its predictions:
            see `teacher_shares`.
        ctc: A `CTC`, a second loss of an encoder-decoder. `None`: the cross-entropy alone.
    """

    def __init__(
        self,
        model,
        loss,
        weigh,
        consistency=None,
        cutoff=None,
        distillation_weight=DISTILLATION_WEIGHT,
        ctc: Any = None,
    ):
        self.model, self.loss, self.weigh = model, loss, weigh
        self.ctc = ctc
        self.consistency, self.cutoff = consistency, cutoff
        self.distillation_weight = distillation_weight
        self.metrics = [Perplexity(loss.pad_id), TokenAccuracy(loss.pad_id)]

    def sum(self, inputs, labels, total, static) -> Tensor:
        """Returns the sum of the losses of a batch, divided by `total`.

        Args:
            inputs, labels: The batch; with a `Consistency` it contains every example twice.
            total: Divisor, a scalar.
            static: Whether shapes must not depend on values.
        """
        inputs, teacher = without_teacher(inputs)
        weights = tf.math.divide_no_nan(self.weigh(inputs, labels), total)  # [B, T]
        hidden, *memory = self._states(inputs)
        flat = _flat(static, weights, hidden, labels, *teacher)
        flat_weights, hidden, flat_labels, *teacher = flat
        if teacher:
            teacher[1] = teacher_shares(teacher[1], self.distillation_weight)
        loss = projected_cross_entropy(
            hidden,
            tf.cast(self.model.output_matrix, hidden.dtype),
            flat_labels,
            flat_weights,
            self.loss.label_smoothing,
            self.consistency,
            self._bias(),
            teacher or None,
        )
        return self._with_ctc(loss, *memory, labels, weights) if memory else loss

    def _states(self, inputs):
        """Returns the last hidden states `[B, T, D]` in training; for CTC, also the memory."""
        options = {} if self.cutoff is None else {"cutoff": self.cutoff}
        if self.ctc is None:
            return (self.model.hidden_states(inputs, training=True, **options),)
        return self.model.hidden_states(inputs, training=True, return_memory=True, **options)

    def _with_ctc(self, loss, memory, padding_mask, labels, weights):
        """Adds the CTC of a memory `[B, S, D]` with its mask, `[B, 1, S]`, to a loss."""
        weights = tf.reduce_max(weights, axis=1)  # [B], 0 for a row of padding
        if self.consistency is not None:
            weights = self.consistency.counted(weights)
        logits = self.model.output_weights.project(memory)  # [B, S, V]
        return self.ctc.joined(loss, logits, padding_mask[:, 0], labels, weights)

    def measure(self, inputs, labels, static) -> tuple[Tensor, Tensor]:
        """Adds a batch to the metrics; returns its summed loss and the sum of its weights."""
        weights = self.weigh(inputs, labels)  # [B, T]
        hidden = self.model.hidden_states(inputs, training=False)  # [B, T, D]
        weights, hidden, labels = _flat(static, weights, hidden, labels)
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
            # `update_state` of the base class, `Mean`: here the sums are known already.
            mean = tf.math.divide_no_nan(value, total)
            keras.metrics.Mean.update_state(metric, mean, sample_weight=total)
        return loss, total

    def _bias(self):
        bias = self.model.output_bias
        return None if bias is None else tf.cast(bias, tf.float32)


def _flat(static, weights, *tensors):
    """Returns weights and other tensors, `[B, T]` or `[B, T, K]`, as `[N]` or `[N, K]`.

    The N positions include those with a weight of 0, such as padding, only if shapes are static.
    """
    weights, *tensors = (
        tf.reshape(values, [-1, *values.shape[2:]]) for values in (weights, *tensors)
    )  # [B * T, ...]
    if static:
        return weights, *tensors
    real = tf.where(weights > 0)[:, 0]  # [N]
    return [tf.gather(values, real) for values in (weights, *tensors)]


class KerasObjective:
    """Any Keras loss with any Keras metrics.

    Losses are averaged over all labels with a weight, not over batches or replicas; the reduction
    of the loss itself is not used.

    Args:
        model: A Keras model.
        loss: A Keras loss, or a function of labels and predictions that returns the loss of each
            label.
        weigh: Function of inputs and labels that returns the weights of the labels.
        metrics: List of Keras metrics, which use these weights.
        consistency: A `Consistency` without token cutoff, for a loss of logits; see
            `projected_cross_entropy`.
        forward: See `Training.forward`.
    """

    def __init__(self, model, loss, weigh, metrics=(), consistency=None, forward=None):
        self.model, self.weigh, self.metrics = model, weigh, list(metrics)
        self.forward = forward
        self.consistency = consistency
        self._losses = loss.call if isinstance(loss, keras.losses.Loss) else loss
        self._name = getattr(loss, "name", None) or getattr(loss, "__name__", str(loss))

    def sum(self, inputs, labels, total, static) -> Tensor:
        """Returns the sum of the losses of a batch, divided by `total`."""
        if without_teacher(inputs)[1]:
            raise ValueError(
                "predictions of a teacher need the `LabelSmoothedCrossEntropy` of a model with "
                f"`hidden_states`, without other metrics. Received: the loss {self._name}."
            )
        fused = self.forward is not None and not static
        predictions = self.forward(inputs) if fused else self.model(inputs, training=True)
        losses, weights = self._weighted(inputs, labels, predictions)
        if self.consistency is not None:
            log_p = tf.nn.log_softmax(tf.cast(predictions, tf.float32))  # [2 * B, C]
            losses, _ = self.consistency.added(losses, 0.0, tf.exp(log_p), log_p)
        return tf.math.divide_no_nan(tf.reduce_sum(losses * weights), total)

    def measure(self, inputs, labels, static) -> tuple[Tensor, Tensor]:
        """Adds a batch to the metrics; returns its summed loss and the sum of its weights."""
        predictions = self.model(inputs, training=False)
        losses, weights = self._weighted(inputs, labels, predictions)
        for metric in self.metrics:
            metric.update_state(labels, predictions, sample_weight=weights)
        return global_sum([tf.reduce_sum(losses * weights), tf.reduce_sum(weights)])

    def _weighted(self, inputs, labels, predictions):
        """Returns the losses and the weights of all labels, both in the shape of the labels."""
        weights = self.weigh(inputs, labels)
        losses = tf.cast(self._losses(labels, predictions), tf.float32)
        if losses.shape.rank != weights.shape.rank:
            raise ValueError(
                f"`loss` must return a loss for each label, of rank {weights.shape.rank}. "
                f"Received: {self._name}, which returns rank {losses.shape.rank}."
            )
        return losses, weights
