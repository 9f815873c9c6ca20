"""Cross-entropy with label smoothing, computed without a [B, T, V] tensor of targets."""

from typing import Any

import keras
import tensorflow as tf

from keras_transformer.checks import check_rate, require_tensorflow
from keras_transformer.tensors import Tensor
from keras_transformer.training.losses.weights import labels_of, position_weights


def smoothed_cross_entropy(
    labels: Tensor, logits: Tensor, label_smoothing: float = 0.0
) -> tf.Tensor:
    """Computes the cross-entropy of every position with a smoothed label (section 5.4).

    The target distribution gives `1 - e` to the label and spreads `e` evenly over the vocabulary,
    so that with `log p = log_softmax(logits)` the cross-entropy has the closed form

        (1 - e) * -log p[label] + e * mean over v of -log p[v]

    Its gradient is `p - e / V`, minus `1 - e` at the label. Both are computed from the same
    exponentials, the only tensor that is kept for the gradient: there is no tensor of targets, and
    the logits can be freed.

    Args:
        labels: Integer ids, [B, T].
        logits: Scores before the softmax, [B, T, V], of any float dtype.
        label_smoothing: `e`, at least 0 and below 1.

    Returns:
        The cross-entropy of each position, float32 [B, T].

    Reference: Szegedy et al. (2016), section 7; Vaswani et al. (2017), section 5.4.

    Differs from the paper: its code (tensor2tensor) spreads `e` over the V - 1 other entries and
    subtracts the entropy of that target, so that a perfect model scores 0. The former scales `e` by
    V / (V - 1), the latter adds a constant without gradient.
    """
    size = logits.shape[-1]
    labels = tf.cast(tf.reshape(labels, [-1]), tf.int32)  # [B*T]
    flat = tf.cast(tf.reshape(logits, [-1, size]), tf.float32)  # [B*T, V]

    @tf.custom_gradient
    def cross_entropy(flat):
        shifted = flat - tf.reduce_max(flat, axis=-1, keepdims=True)  # [B*T, V], no overflow
        at_label = tf.gather(shifted, labels, batch_dims=1)  # [B*T]
        exponentials = tf.exp(shifted)  # [B*T, V]
        total = tf.reduce_sum(exponentials, axis=-1)  # [B*T]
        target = at_label
        if label_smoothing:  # without it, this saves a pass over the logits
            average = tf.reduce_mean(shifted, axis=-1)  # [B*T]
            target = (1 - label_smoothing) * at_label + label_smoothing * average

        def gradient(upstream):  # [B*T]
            probabilities = exponentials * (upstream / total)[:, None]  # [B*T, V], times upstream
            if label_smoothing:
                probabilities -= (upstream * (label_smoothing / size))[:, None]
            place = tf.stack([tf.range(tf.size(labels)), labels], axis=1)  # [B*T, 2]
            return tf.tensor_scatter_nd_sub(probabilities, place, (1 - label_smoothing) * upstream)

        return tf.math.log(total) - target, gradient

    return tf.reshape(cross_entropy(flat), tf.shape(logits)[:-1])  # [B, T]


def global_sum(value) -> Tensor:
    """Sums a tensor, or each tensor of a list, over the replicas of the current strategy.

    Outside of a replica, where Keras only traces the shapes of a model, `value` is returned.
    """
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if replicas == 1 or tf.distribute.in_cross_replica_context():
        return value
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, value)


@keras.saving.register_keras_serializable(package="keras_transformer")
class LabelSmoothedCrossEntropy(keras.losses.Loss):
    """Mean of the smoothed cross-entropy over all tokens except padding.

    With sample weights it is the weighted mean over these tokens. Use it in
    `model.compile(loss=...)` of any model with outputs [B, T, V].

    Under a `tf.distribute` strategy the divisor is the number of tokens of all replicas, so that
    replicas with unequal numbers of tokens together give exactly the gradient of one device; Keras'
    own reductions average the means of the replicas instead. Implicit Keras masks are ignored: a
    position counts unless its label is padding.

    Args:
        label_smoothing: Probability spread evenly over the vocabulary, at least 0 and below 1.
        pad_id: Label of positions that do not count.
        name: Name of the loss.

    Call arguments:
        y_true: Integer labels, [B, T].
        y_pred: Logits, [B, T, V].
        sample_weight: Weight of each sentence, [B], or of each position, [B, T]; padding never
            counts. `None`: 1.

    Returns:
        A float32 scalar; inside a replica, the share of this replica in the loss of all.

    Raises:
        ValueError: If `label_smoothing` is out of range, or sample weights have a wrong shape.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
        >>> loss = LabelSmoothedCrossEntropy(label_smoothing=0.1, pad_id=0)
        >>> logits = np.zeros((1, 3, 4), "float32")  # [B, T, V], the same for all tokens
        >>> round(float(loss(np.array([[2, 3, 0]]), logits)), 4)  # log 4, the mean of two tokens
        1.3863

    Reference: Vaswani et al. (2017), section 5.4.
    """

    def __init__(self, label_smoothing: float = 0.1, pad_id: int = 0, name: str = "loss"):
        require_tensorflow("the losses and metrics of this package")
        super().__init__(name=name, reduction="sum")
        check_rate("label_smoothing", label_smoothing)
        self.label_smoothing = label_smoothing
        self.pad_id = pad_id

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Returns the loss of each position, padding included, [B, T]."""
        return smoothed_cross_entropy(y_true, y_pred, self.label_smoothing)

    # `__call__` is replaced because that of the base class casts labels to float and reduces each
    # replica by itself.
    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        labels = labels_of(y_true, y_pred)  # [B, T]
        losses = self.call(labels, y_pred)  # [B, T]
        weights = tf.cast(tf.not_equal(labels, self.pad_id), tf.float32)  # [B, T]
        if sample_weight is not None:
            weights *= position_weights(sample_weight, weights)
        total = global_sum(tf.reduce_sum(weights))
        return tf.math.divide_no_nan(tf.reduce_sum(losses * weights), total)

    def get_config(self) -> dict[str, Any]:
        return {
            "label_smoothing": self.label_smoothing,
            "pad_id": self.pad_id,
            "name": self.name,
        }
