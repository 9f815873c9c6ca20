"""Training of sparse vectors of texts."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.tensors import Tensor
from keras_transformer.training.losses.flops import SparseContrastiveLoss
from keras_transformer.training.tasks.sparse_embedding.largest_logits import largest_logits
from keras_transformer.training.tasks.text_pairs import TextPairsTraining


class SparseEmbeddingTraining(TextPairsTraining):
    """Training of sparse vectors with a contrastive loss of pairs and the FLOPS regulariser."""

    purpose = "sparse_embedding"

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        self.check_devices()
        head = self.config.head
        return SparseContrastiveLoss(
            head.query_flops,
            head.text_flops,
            head.flops_updates or max(1, settings.updates // 3),
            scale=head.scale,
            symmetric=head.symmetric,
        )

    def forward(self, model) -> Callable[[Any], Tensor] | None:
        """Returns the function for the pooling `"max"`, which needs only the largest logits."""
        if self.config.head.pooling != "max":
            return None
        return functools.partial(weights_of_largest, model)


def weights_of_largest(model, inputs) -> Tensor:
    """Returns `model(inputs, training=True)`, the weights `[B, V]`; see `largest_logits`.

    Args:
        model: A `SparseTextEmbedder` whose pooling is `"max"`.
        inputs: Token ids, `[B, S]`.
    """
    hidden = model.hidden_states(inputs, training=True)  # [B, S, E]
    matrix, bias = tf.cast(model.output_matrix, hidden.dtype), model.output_bias
    bias = None if bias is None else tf.cast(bias, tf.float32)
    mask = model.parts.input.padding_mask(inputs)  # [B, 1, S]
    logits = largest_logits(hidden, matrix, mask, bias)  # [B, V]
    return model.parts.head.layers["vector"](logits[:, None])  # one position
