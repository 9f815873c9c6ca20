"""Perplexity and accuracy per token, without padding, exact over batches of any shape."""

from typing import Any

import keras
from keras import ops

from keras_transformer.checks import require_tensorflow
from keras_transformer.tensors import Tensor
from keras_transformer.training.losses.cross_entropy import smoothed_cross_entropy
from keras_transformer.training.losses.weights import labels_of, position_weights


class _OfTokens(keras.metrics.Mean):
    """Mean over all tokens except padding; see `Perplexity` for the arguments."""

    def __init__(self, pad_id: int, name: str, **kwargs: Any):
        require_tensorflow("the losses and metrics of this package")
        super().__init__(name=name, **kwargs)
        self.pad_id = pad_id

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        labels = labels_of(y_true, y_pred)  # [B, T]
        values = ops.cast(self.values(labels, y_pred), "float32")
        weights = ops.cast(ops.not_equal(labels, self.pad_id), "float32")
        if sample_weight is not None:
            weights *= position_weights(sample_weight, weights)
        # [B*T]: `Mean` would average each sentence.
        super().update_state(ops.reshape(values, (-1,)), ops.reshape(weights, (-1,)))

    def values(self, labels: Tensor, y_pred: Tensor) -> Tensor:
        """Returns the value of each token, [B, T]."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "pad_id": self.pad_id}


@keras.saving.register_keras_serializable(package="keras_transformer")
class Perplexity(_OfTokens):
    """Perplexity per token: `exp` of the mean cross-entropy, in nats and without label smoothing.

    Padding does not count. Use it in `model.compile(metrics=...)` of any model with outputs
    [B, T, V].

    Args:
        pad_id: Label of positions that do not count.
        name: Name of the metric.

    Call arguments:
        y_true: Integer labels, [B, T].
        y_pred: Logits, [B, T, V].
        sample_weight: Weight of each sentence, [B], or of each position, [B, T]; padding never
            counts. `None`: 1.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.training.losses.metrics import Perplexity
        >>> perplexity = Perplexity(pad_id=0)
        >>> perplexity.update_state(np.array([[2, 3, 0]]), np.zeros((1, 3, 4), "float32"))
        >>> round(float(perplexity.result()), 4)  # all 4 tokens are equally probable
        4.0
    """

    def __init__(self, pad_id: int = 0, name: str = "perplexity", **kwargs: Any):
        super().__init__(pad_id, name, **kwargs)

    def values(self, labels: Tensor, y_pred: Tensor) -> Tensor:
        return smoothed_cross_entropy(labels, y_pred)

    def result(self) -> Tensor:
        return ops.exp(super().result())


@keras.saving.register_keras_serializable(package="keras_transformer")
class TokenAccuracy(_OfTokens):
    """Share of tokens for which the label has the highest logit, given the true prefix.

    Padding does not count. Arguments and call arguments are the same as for `Perplexity`.
    """

    def __init__(self, pad_id: int = 0, name: str = "token_accuracy", **kwargs: Any):
        super().__init__(pad_id, name, **kwargs)

    def values(self, labels: Tensor, y_pred: Tensor) -> Tensor:
        return ops.argmax(y_pred, axis=-1) == ops.cast(labels, "int32")
