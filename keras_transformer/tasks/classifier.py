"""A classifier in use: strings to labels with their probabilities."""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_transformer.models.classifier import TextClassifier
from keras_transformer.tasks.pipeline import TextPipeline
from keras_transformer.tasks.strings import check_sentences, encode, map_sorted


@dataclasses.dataclass(frozen=True)
class Classification:
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
        return float(np.log(max(self.probability, np.finfo(np.float32).tiny)))


class Classifier(TextPipeline):
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

    def __init__(self, model, tokenizer, max_length=None):
        super().__init__(model, tokenizer, max_length)
        self.labels = model.config.labels
        self._classify = tf.function(
            self._probabilities,
            input_signature=[tf.TensorSpec([None], tf.string, name="sentences")],
            autograph=False,
        )

    def encode(self, texts):
        """Returns token ids `[B, S]`, padded, and whether each text was cut, `[B]`."""
        ids, truncated, _ = encode(self.source_tokenizer, texts, self.max_length)
        return ids.to_tensor(self.model.config.pad_id), truncated

    def _probabilities(self, texts):
        ids, truncated = self.encode(texts)  # [B, S], [B]
        return tf.nn.softmax(self.model(ids, training=False)), truncated  # [B, C], [B]

    def __call__(self, texts, batch_size=64):
        """Returns the labels of a list of strings, in order."""
        return [result.label for result in self.classify(texts, batch_size)]

    def classify(self, texts, batch_size=64):
        """Returns a `Classification` for each of a list of strings.

        Args:
            texts: List of strings, of any length.
            batch_size: Texts at a time; texts of similar length go together.

        Raises:
            TypeError: If `texts` is not a list of strings.
        """
        return map_sorted(self.classify_batch, check_sentences(texts, "texts"), batch_size)

    def classify_batch(self, texts):
        """Returns a `Classification` for each of a list of strings, as one batch."""
        batch = tf.constant(texts, tf.string, [len(texts)])
        return to_classifications(self.labels, *self._classify(batch))


def to_classifications(labels, probabilities, truncated):
    """Returns a `Classification` of each text.

    Args:
        labels: Names of the classes C.
        probabilities: `[B, C]`.
        truncated: Boolean `[B]`.
    """
    rows = zip(np.asarray(probabilities), np.asarray(truncated), strict=True)
    return [
        Classification(labels[row.argmax()], float(row.max()), bool(cut), row) for row, cut in rows
    ]
