"""A classifier in use: strings to labels with their probabilities."""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_transformer.models.classifier import TextClassifier
from keras_transformer.tasks.classification import SPACES
from keras_transformer.tasks.single_pass.codec import Guide, Result
from keras_transformer.tasks.single_pass.text import MODULES, RULE, TextCodec, TextPass, quoted


@dataclasses.dataclass(frozen=True)
class Classification(Result):
    """The label that a model gives to one text.

    Args:
        label: The most probable label.
        probability: Its probability.
        truncated: Whether the text was longer than the model's limit and was cut.
        probabilities: Array `[C]`, float32, in the order of the classifier's labels.
    """

    label: str
    probability: float
    truncated: bool
    probabilities: np.ndarray = dataclasses.field(compare=False, repr=False)

    @property
    def text(self):
        """The label: what `predict` writes."""
        return self.label

    @property
    def score(self):
        """The natural logarithm of the probability."""
        return _log(self.probability)

    @property
    def numbers(self):
        """The probabilities."""
        return self.probabilities

    def score_of(self, other):
        """The logarithm of the probability of the label of another result."""
        return _log(self.probabilities[other.probabilities.argmax()])

    def is_tied(self, other, tolerance):
        """Whether the two most probable labels are within twice the tolerance."""
        top, second = np.sort(self.probabilities)[:-3:-1]
        return bool(top - second <= 2 * tolerance)


class ClassificationCodec(TextCodec):
    """From texts to probabilities of labels, and to the label.

    Args:
        tokenizer, max_length: See `TextCodec`.
        labels: Names of the classes C.
    """

    verb, number = "classify", "probability"
    rule = RULE.format("For any other row all probabilities are 0.")
    nothing = {"probabilities": 0.0, "label": -1}

    def __init__(self, tokenizer, max_length, labels):
        super().__init__(tokenizer, max_length)
        self.labels = tuple(labels)

    def outputs(self, prediction):
        """Returns `probabilities` `[B, C]`, and `label`, int32 `[B]`, a place in `labels`."""
        probabilities = tf.nn.softmax(prediction)  # [B, C]
        label = tf.argmax(probabilities, axis=1, output_type=tf.int32)  # [B]
        return {"probabilities": probabilities, "label": label}

    def named(self, outputs):  # noqa: D102
        probabilities = outputs["probabilities"]  # [B, C]
        return {
            "label": tf.gather(tf.constant(self.labels), tf.argmax(probabilities, axis=1)),
            "probability": tf.reduce_max(probabilities, axis=1),
            "probabilities": probabilities,
        }

    def answers(self, outputs, rest):  # noqa: D102
        return {**self.named(outputs), "truncated": rest["truncated"]}

    @classmethod
    def results(cls, answers):
        """Returns a `Classification` of each text."""
        columns = (answers[name] for name in ("label", "probability", "truncated", "probabilities"))
        return [
            Classification(label.decode(), float(probability), bool(cut), row)
            for label, probability, cut, row in zip(*columns, strict=True)
        ]

    def facts(self):  # noqa: D102
        return {"labels": list(self.labels), **super().facts()}

    @classmethod
    def from_facts(cls, facts, tokenizers):  # noqa: D102
        return cls(tokenizers, facts["max_length"], facts["labels"])

    def guide(self, example):  # noqa: D102
        labels = ", ".join(f"`{label}`" for label in self.labels)
        texts, strings = self.notes()
        count = f"C: the {len(self.labels)} labels, in the order above. `label` is the most "
        return Guide(
            purpose=f"Gives texts one of the labels {labels}, with its tokenizer inside",
            request={"sentences": quoted([example])},
            axes={"source": "B, S", "probabilities": "B, C"},
            notes=[texts, f"{count}probable of them.", strings],
            modules=MODULES,
        )

    def quality(self, results, references):
        """Returns the `accuracy`, from 0 to 100."""
        right = [
            result.label == reference.strip(SPACES)
            for result, reference in zip(results, references, strict=True)
        ]
        return {"accuracy": 100 * float(np.mean(right))}


class Classifier(TextPass):
    """A trained `TextClassifier` with its tokenizer.

    Args:
        model: A `TextClassifier`.
        tokenizer: The `Tokenizer` it was trained with.
        max_length: Longest text in tokens, its end included; longer ones are cut. `None`: the
            model's `max_length`.

    Raises:
        TypeError: If an argument is of another type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.

    Example:
        from keras_transformer import Classifier
        Classifier.from_run("runs/sst2")(["one long string of cliches"])
    """

    task = "classification"
    model_class = TextClassifier
    output = "label"
    codec_class = ClassificationCodec

    @property
    def labels(self):
        """Names of the classes, in the order of the probabilities."""
        return self.codec.labels

    def make_codec(self):  # noqa: D102
        return ClassificationCodec(self.tokenizers, self.max_length, self.model.config.labels)

    def classify(self, texts, batch_size=64):
        """Returns a `Classification` for each of a list of strings.

        Args:
            texts: List of strings, of any length.
            batch_size: Texts at a time; texts of similar length go together.

        Raises:
            TypeError: If `texts` is not a list of strings.
        """
        return self.answer(texts, batch_size)


def _log(probability):
    return float(np.log(max(probability, np.finfo(np.float32).tiny)))
