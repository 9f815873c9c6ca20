"""Consistency training: two passes of a batch, whose predictions must agree."""

import abc
import dataclasses
from typing import Any, ClassVar

import keras
import tensorflow as tf

from keras_transformer.tensors import Tensor


def twice(values) -> Any:
    """Repeats a batch, so that dropout gives two passes: `[B, ...]` becomes `[2 * B, ...]`."""
    return tf.nest.map_structure(lambda tensor: tf.concat([tensor, tensor], axis=0), values)


@dataclasses.dataclass(frozen=True)
class Consistency(abc.ABC):
    """Loss on the difference between the predictions of two passes of a batch.

    The passes are the two halves of a batch: rows r and R + r are the same position.

    Args:
        weight: Weight of the difference.

    Attributes:
        cross_entropies: Number of passes whose cross-entropy is a part of the loss, 1 or 2.
    """

    weight: float

    cross_entropies: ClassVar[int] = 2

    @abc.abstractmethod
    def added(self, loss, by_z, p, log_p) -> tuple[Tensor, Tensor]:
        """Adds the difference between the passes to the cross-entropy of their predictions.

        Args:
            loss: Cross-entropy of each row, float32 `[2 * R]`.
            by_z: Gradient of `loss` with respect to the logits, float32 `[2 * R, V]`.
            p: Probabilities, float32 `[2 * R, V]`.
            log_p: Logarithms of `p`.

        Returns:
            The loss of each row, and the gradient of the sum of all losses with respect to the
            logits.
        """

    def counted(self, weights) -> Tensor:
        """Returns the weights of the cross-entropies, from those of all rows, `[2 * N]`."""
        return weights

    def make_cutoff(self) -> keras.layers.Layer | None:
        """Returns a layer that chooses the embeddings to cut off, or `None`."""
        return None
