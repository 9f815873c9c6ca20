"""Training of token classification."""

from typing import Any

import keras
import tensorflow as tf

from keras_transformer.fields import TokenLabels, Tokens
from keras_transformer.fields.labels import NONE, WRONG
from keras_transformer.tasks.token_classification.words import encode_words
from keras_transformer.tensors import Tensor
from keras_transformer.training.losses.class_cross_entropy import ClassCrossEntropy
from keras_transformer.training.losses.metrics import TokenAccuracy
from keras_transformer.training.tasks.task import TextTraining


class TokenClassificationTraining(TextTraining):
    """Training on texts and labels of their words with the smoothed cross-entropy of the labels.

    A batch is (tokens [B, S], labels [B, S]), int32. The first token of a word has the label of the
    word, an index in the `labels` of the configuration. Its other tokens, the end of the text and
    padding have -1 and do not count.
    """

    @classmethod
    def label_fields(cls, names) -> dict[str, Any]:  # noqa: D102
        return {"labels": TokenLabels(names)}

    @property
    def fields(self) -> dict[str, Any]:  # noqa: D102
        labels = self.label_fields(self.config.head.labels)
        return {"words": Tokens(self.tokenizers.source), **labels}

    def encode(self, columns) -> dict[str, Any]:
        """Returns token ids and the label of each token, both ragged `[B, (S)]`.

        All labels are `WRONG` if an example has an unknown label, or a number of labels that is not
        its number of words.
        """
        ids, first, _ = encode_words(self.tokenizers.source, columns["words"])
        field = self.fields["labels"]
        labels = field.encode(columns["labels"])  # [B, (W)]
        valid = field.is_valid(labels) & tf.equal(labels.row_lengths(), first.row_lengths())  # [B]
        of_tokens = ids.with_flat_values(_labels_of_tokens(ids, first, labels, valid))
        return {"words": ids, "labels": of_tokens}

    def assemble(self, words, labels) -> tuple:  # noqa: D102
        return words, labels

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        return ClassCrossEntropy(settings.label_smoothing)

    def metrics(self) -> list[keras.Metric]:  # noqa: D102
        return [TokenAccuracy(pad_id=-1, name="accuracy")]

    def weigh(self, inputs, labels) -> Tensor:
        """Returns 1 for the first token of each word, and 0 for all other tokens."""
        real = tf.not_equal(inputs, self.pad_id)  # false in rows that pad a replica's batch
        return tf.cast(real & (labels >= 0), tf.float32)


def _labels_of_tokens(ids, first, labels, valid):
    """Returns the labels of the flat values of `ids`.

    The first token of a word has the label of the word, other tokens have `NONE`, and all tokens of
    examples that are not valid have `WRONG`.
    """
    begins = tf.gather(ids.row_splits[:-1], first.value_rowids()) + first.flat_values
    of_words = tf.boolean_mask(labels.flat_values, tf.gather(valid, labels.value_rowids()))
    indices = tf.boolean_mask(begins, tf.gather(valid, first.value_rowids()))
    none = tf.fill(tf.shape(ids.flat_values), NONE)
    of_tokens = tf.tensor_scatter_nd_update(none, tf.expand_dims(indices, 1), of_words)
    return tf.where(tf.gather(valid, ids.value_rowids()), of_tokens, WRONG)
