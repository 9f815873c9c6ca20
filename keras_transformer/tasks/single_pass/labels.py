"""Codecs of models that classify an example as one of a few labels."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.class_labels import SPACES
from keras_transformer.tasks.single_pass.codec import Codec, mean_of
from keras_transformer.tasks.single_pass.result import Choice, log_of
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class Classification(Choice):
    """The label that a model predicts for a text or an image.

    Args:
        label: The most probable label.
        probability: Its probability.
        truncated: Whether a text was longer than the model's limit and was truncated.
        probabilities: Array `[C]`, float32, in the order of the classifier's labels.
    """

    label: str
    probability: float
    truncated: bool
    probabilities: np.ndarray = dataclasses.field(compare=False, repr=False)  # ty: ignore[incompatible-attribute-override]

    @property
    def text(self) -> str:
        """The label, as `predict` writes it."""
        return self.label

    def score_of(self, other: Any) -> float:
        """Returns the logarithm of the probability of another result's label."""
        return float(log_of(self.probabilities[other.probabilities.argmax()]))

    def is_tied(self, other: Any, tolerance: float) -> bool:
        """Returns whether the two largest probabilities differ by at most twice the tolerance."""
        top, second = np.sort(self.probabilities)[:-3:-1]
        return bool(top - second <= 2 * tolerance)


class LabelCodec(Codec):
    """Converts the logits of labels to probabilities and to the label, of examples or tokens.

    Attributes:
        labels: Names of the classes C.
    """

    labels = ()
    verb, number = "classify", "probability"
    nothing = {"probabilities": 0.0, "label": -1}

    def outputs(self, prediction) -> dict[str, Tensor]:
        """Returns `probabilities`, `[..., C]`, and `label`, indices into `labels`, `[...]`."""
        return self._labelled(tf.nn.softmax(prediction))

    def mean(self, outputs, rest) -> dict[str, Tensor]:
        """Returns the mean of the probabilities, and the most probable label by this mean."""
        return self._labelled(mean_of(outputs, "probabilities"))

    def _labelled(self, probabilities):
        label = tf.argmax(probabilities, axis=-1, output_type=tf.int32)  # [...]
        return {"probabilities": probabilities, "label": label}

    def named(self, outputs) -> dict[str, Any]:  # noqa: D102
        probabilities = outputs["probabilities"]  # [..., C]
        return {
            "label": tf.gather(tf.constant(self.labels), tf.argmax(probabilities, axis=-1)),
            "probability": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
        }

    def quality(self, results, references) -> dict[str, float]:
        """Returns the `accuracy`, from 0 to 100."""
        correct = [
            result.label == reference.strip(SPACES)
            for result, reference in zip(results, references, strict=True)
        ]
        return {"accuracy": 100 * float(np.mean(correct))}
