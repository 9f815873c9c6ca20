"""F1 of sets of labels, exact over batches of any size."""

from typing import Any

import keras
from keras import ops

from keras_transformer.checks import check_choice, check_count, check_share
from keras_transformer.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class LabelF1(keras.metrics.Metric):
    """Micro or macro F1 of classifiers with several labels, from 0 to 1.

    `F1 = 2 TP / (2 TP + FP + FN)`, and 0 if the three are 0. True positives, false positives and
    false negatives are counted over all examples, for each label; `"macro"` is the mean of F1 over
    the labels, `"micro"` is F1 of the sums of the counts.

    Args:
        num_labels: Number of labels C.
        threshold: Probability from which on an example has a label.
        average: `"micro"` or `"macro"`.
        name: Name of the metric.

    Call arguments:
        y_true: 1 for each label of an example, otherwise 0, [B, C].
        y_pred: Logits, [B, C].
        sample_weight: Weight of each example, [B]. `None`: 1.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.training.tasks.multi_label_classification.label_f1 import LabelF1
        >>> metric = LabelF1(2, average="macro")
        >>> metric.update_state(np.array([[1, 0], [1, 1]]), np.array([[9.0, 9.0], [-9.0, 9.0]]))
        >>> round(float(metric.result()), 4)  # the mean of 2/3 and 2/3
        0.6667
    """

    def __init__(
        self,
        num_labels: int,
        threshold: float = 0.5,
        average: str = "micro",
        name: str = "f1",
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        check_count("num_labels", num_labels)
        check_share("threshold", threshold)
        check_choice("average", average, ("micro", "macro"))
        self.num_labels, self.threshold, self.average = num_labels, threshold, average
        shape = (num_labels,)
        self.right = self.add_variable(shape, initializer="zeros", name="true_positives")
        self.both = self.add_variable(shape, initializer="zeros", name="predicted_and_correct")

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        probabilities = ops.sigmoid(ops.cast(y_pred, "float32"))
        predicted = ops.cast(probabilities >= self.threshold, "float32")  # [B, C]
        correct = ops.cast(y_true, "float32")
        weights = ops.ones_like(correct[:, :1])
        if sample_weight is not None:
            weights *= ops.reshape(ops.cast(sample_weight, "float32"), (-1, 1))
        self.right.assign_add(ops.sum(weights * predicted * correct, axis=0))
        self.both.assign_add(ops.sum(weights * (predicted + correct), axis=0))

    def result(self) -> Tensor:
        right, both = ops.convert_to_tensor(self.right), ops.convert_to_tensor(self.both)
        if self.average == "micro":
            right, both = ops.sum(right), ops.sum(both)
        return ops.mean(ops.divide_no_nan(2 * right, both))

    def get_config(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in ("num_labels", "threshold", "average")}
        return {**super().get_config(), **options}
