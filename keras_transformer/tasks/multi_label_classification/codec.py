"""The codec of classification with several labels, and its results."""

import dataclasses
import json
import re
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.examples import ExampleError
from keras_transformer.tasks.multi_label_classification.metrics import as_matrix, f1_scores
from keras_transformer.tasks.multi_label_classification.thresholds import USUAL, thresholds_of
from keras_transformer.tasks.single_pass.codec import mean_of
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.result import Choice, log_of
from keras_transformer.tasks.single_pass.text import MODULES, RULE, quoted
from keras_transformer.tasks.single_pass.text_labels import TextLabelCodec
from keras_transformer.tensors import Tensor
from keras_transformer.text.lists import items_of


@dataclasses.dataclass(frozen=True)
class LabelSet(Choice):
    """The labels that a model predicts for a text, perhaps none.

    Args:
        labels: Labels whose probability is at least their threshold, in the classifier's order.
        truncated: Whether the text was longer than the model's limit and was truncated.
        probabilities: Array `[C]`, float32, in the order of the classifier's labels: the
            probability of each label, whatever others the text has.
        thresholds: Tuple of C thresholds.
        separator: String between the labels in `text`.
        shown: Dictionary from the `labels` to their probabilities, the highest first, which `text`
            is then, as JSON. `None`: `text` has the labels only.
    """

    labels: tuple[str, ...]
    truncated: bool
    probabilities: np.ndarray = dataclasses.field(compare=False, repr=False)  # ty: ignore[incompatible-attribute-override]
    thresholds: tuple[float, ...] = dataclasses.field(compare=False, repr=False)
    separator: str = dataclasses.field(default=",", compare=False, repr=False)
    shown: dict[str, float] | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The labels with the separator between them; see `shown`."""
        if self.shown is None:
            return self.choice
        return json.dumps(self.shown, ensure_ascii=False)

    @property
    def choice(self) -> str:
        """The labels with the separator between them."""
        return self.separator.join(self.labels)

    def score_of(self, other: Any) -> float:
        """Returns the logarithm of the probability of another result's set of labels.

        It is the sum of the logarithms of the probabilities to have each of them, and to have none
        of the others.
        """
        has = other._predicted()
        return float(np.sum(log_of(np.where(has, self.probabilities, 1 - self.probabilities))))

    def score_error(self, other: Any) -> float:
        """Returns the error of the score, divided by the number of classes."""
        return super().score_error(other) / len(self.thresholds)

    def is_tied(self, other: Any, tolerance: float) -> bool:
        """Returns whether labels differ only where a probability is close to its threshold."""
        differ = self._predicted() != other._predicted()
        gaps = np.abs(self.probabilities - np.array(self.thresholds, "float32"))
        return bool(np.all(gaps[differ] <= 2 * tolerance))

    def _predicted(self):
        return self.probabilities >= np.array(self.thresholds, "float32")


class LabelSetCodec(TextLabelCodec):
    """Converts texts to inputs of a model, and its logits to probabilities and sets of labels.

    Args:
        tokenizer, max_length, labels: See `TextLabelCodec`.
        threshold: See `thresholds_of`.
        separator: See `LabelSetHead`.

    Attributes:
        thresholds: Tuple of the thresholds of the labels.
        shows_probabilities: Whether the text of a result has probabilities.
    """

    rule = RULE.format("For any other row all numbers are 0.")
    nothing = {"probabilities": 0.0, "predicted": 0}
    score_unit = "nats per label"
    shows_probabilities = False

    def __init__(self, tokenizer, max_length, labels, threshold=USUAL, separator=","):
        super().__init__(tokenizer, max_length, labels)
        self._decide(threshold, separator)

    def _decide(self, threshold, separator):
        self.thresholds = thresholds_of(threshold, self.labels)
        self.separator = separator

    def outputs(self, prediction) -> dict[str, Tensor]:
        """Returns `probabilities`, and `predicted`, 1 from the threshold on; both `[B, C]`."""
        return self._decided(tf.sigmoid(prediction))

    def mean(self, outputs, rest) -> dict[str, Tensor]:
        """Returns the mean of the probabilities, and which labels it predicts."""
        return self._decided(mean_of(outputs, "probabilities"))

    def _decided(self, probabilities):
        thresholds = tf.constant(self.thresholds, probabilities.dtype)
        predicted = tf.cast(probabilities >= thresholds, tf.int32)
        return {"probabilities": probabilities, "predicted": predicted}

    def named(self, outputs) -> dict[str, Any]:
        """Adds `labels`, string `[B]`: the predicted labels with the separator between them."""
        items = tf.constant([self.separator + label for label in self.labels])
        chosen = tf.where(tf.cast(outputs["predicted"], tf.bool), items, "")  # [B, C]
        joined = tf.strings.reduce_join(chosen, axis=1)
        first = f"^{re.escape(self.separator)}"
        return {"labels": tf.strings.regex_replace(joined, first, ""), **outputs}

    def answers(self, outputs, rest) -> dict[str, Any]:  # noqa: D102
        return {**self.named(outputs), "truncated": rest["truncated"]}

    def results(self, answers) -> list[LabelSet]:
        """Returns a `LabelSet` for each text."""
        columns = (answers[name] for name in ("predicted", "truncated", "probabilities"))
        return [self._result(*row) for row in zip(*columns, strict=True)]

    def _result(self, predicted, truncated, probabilities):
        places = np.flatnonzero(predicted)
        labels, shown = tuple(self.labels[place] for place in places), None
        if self.shows_probabilities:
            best = sorted(places, key=lambda place: -probabilities[place])
            shown = {self.labels[place]: round(float(probabilities[place]), 5) for place in best}
        return LabelSet(
            labels, bool(truncated), probabilities, self.thresholds, self.separator, shown
        )

    def line_metadata(self) -> dict[str, Any]:
        """Returns the labels, their thresholds and the separator."""
        threshold = dict(zip(self.labels, self.thresholds, strict=True))
        return {"labels": list(self.labels), "threshold": threshold, "separator": self.separator}

    @classmethod
    def of_lines(cls, metadata) -> "LabelSetCodec":  # noqa: D102
        return _Lines(**metadata)

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        return {**super().metadata(), **self.line_metadata()}

    @classmethod
    def from_metadata(cls, metadata, tokenizers) -> "LabelSetCodec":  # noqa: D102
        names = ("max_length", "labels", "threshold", "separator")
        return cls(tokenizers, *(metadata[name] for name in names))

    def guide(self, example) -> Guide:  # noqa: D102
        labels = ", ".join(f"`{label}`" for label in self.labels)
        texts, strings = self.notes()
        return Guide(
            purpose=f"Classifies texts by several of the labels {labels}, with its tokenizer "
            "inside",
            request={"sentences": quoted([example])},
            axes={"source": "B, S", **dict.fromkeys(("probabilities", "predicted"), "B, C")},
            notes=[
                texts,
                f"C: the {len(self.labels)} labels, in the order above. `predicted` is 1 for each "
                "label whose probability is at least its threshold; `labels` are their names, with "
                f"`{self.separator}` between them.",
                strings,
            ],
            modules=MODULES,
        )

    def sets(self, references) -> list[tuple[str, ...]]:
        """Returns the labels of each reference.

        Args:
            references: List of strings with the separator between labels, or of tuples of labels.

        Raises:
            ValueError: If a label is not one of `labels`; the error names the example.
        """
        sets = [
            items_of(reference, self.separator) if isinstance(reference, str) else tuple(reference)
            for reference in references
        ]
        known = {*self.labels}
        for number, labels in enumerate(sets, start=1):
            for label in labels:
                if label not in known:
                    raise ExampleError(
                        number,
                        "each label must be one of those in the training data, "
                        f"{', '.join(self.labels)}. Received: {label!r}.",
                    )
        return sets

    def quality(self, results, references) -> dict[str, float]:
        """Returns `micro_f1` and `macro_f1`, from 0 to 100."""
        correct = as_matrix(self.sets(references), self.labels)
        predicted = as_matrix([result.labels for result in results], self.labels)
        micro, per_label = f1_scores(predicted, correct)
        return {"micro_f1": 100 * micro, "macro_f1": 100 * float(per_label.mean())}


class _Lines(LabelSetCodec):
    """A `LabelSetCodec` without a tokenizer: it reads the answers of a SavedModel."""

    def __init__(self, labels, threshold, separator):
        self.labels = tuple(labels)
        self._decide(threshold, separator)
