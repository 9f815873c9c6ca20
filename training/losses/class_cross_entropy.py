"""Cross-entropy of class labels, with label smoothing."""

from typing import Any

import keras

from keras_transformer.checks import check_rate
from keras_transformer.tensors import Tensor
from keras_transformer.training.losses.cross_entropy import smoothed_cross_entropy


@keras.saving.register_keras_serializable(package="keras_transformer")
class ClassCrossEntropy(keras.losses.Loss):
    """Cross-entropy of class labels, of examples or of their positions, with label smoothing.

    Computes `keras.losses.SparseCategoricalCrossentropy(from_logits=True)` and adds the label
    smoothing that it lacks; see `smoothed_cross_entropy`.

    Args:
        label_smoothing: Share of the probability that is spread over all classes, at least 0 and
            below 1.
        name: Name of the loss.

    Call arguments:
        y_true: Integer labels, [B] or [B, S]. A negative label, such as that of padding, is read as
            0: give it a weight of 0.
        y_pred: Logits, [B, C] or [B, S, C].

    Raises:
        ValueError: If `label_smoothing` is out of range.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.training.losses.class_cross_entropy import ClassCrossEntropy
        >>> loss = ClassCrossEntropy()(np.array([0, 1]), np.zeros((2, 2), "float32"))
        >>> round(float(loss), 4)  # log 2
        0.6931

    Reference: Szegedy et al. (2016), section 7; Vaswani et al. (2017), section 5.4.
    """

    def __init__(self, label_smoothing: float = 0.0, name: str = "loss", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        check_rate("label_smoothing", label_smoothing)
        self.label_smoothing = label_smoothing

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        labels = keras.ops.maximum(y_true, 0)
        return smoothed_cross_entropy(labels, y_pred, self.label_smoothing)  # [B]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "label_smoothing": self.label_smoothing}
