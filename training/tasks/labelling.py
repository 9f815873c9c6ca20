"""The training of token labelling."""

import keras
import tensorflow as tf

from keras_transformer.fields import TokenLabels, Tokens
from keras_transformer.fields.labels import NONE, WRONG
from keras_transformer.tasks.labelling.words import encode_words
from keras_transformer.training.losses.class_cross_entropy import ClassCrossEntropy
from keras_transformer.training.losses.metrics import TokenAccuracy
from keras_transformer.training.tasks.task import TextTraining


class LabellingTraining(TextTraining):
    """Texts and labels of their words; the loss is the smoothed cross-entropy of the labels.

    A batch is (tokens [B, S], labels [B, S]), int32: the label of a word, which is its place among
    the `labels` of the configuration, belongs to its first piece. Other pieces, the end of the text
    and padding have -1 and count nothing.
    """

    @property
    def fields(self):  # noqa: D102
        return {
            "words": Tokens(self.tokenizers.source),
            "labels": TokenLabels(self.config.labels),
        }

    def encode(self, columns):
        """Returns token ids, and for each of them a label, ragged `[B, (S)]`.

        All labels of an example with an unknown label, or with more or fewer labels than words, are
        `WRONG`.
        """
        ids, first, _ = encode_words(self.tokenizers.source, columns["words"])
        field = self.fields["labels"]
        labels = field.encode(columns["labels"])  # [B, (W)]
        right = field.is_valid(labels) & tf.equal(labels.row_lengths(), first.row_lengths())  # [B]
        spread = ids.with_flat_values(_spread(ids, first, labels, right))
        return {"words": ids, "labels": spread}

    def assemble(self, words, labels):  # noqa: D102
        return words, labels

    def loss(self, settings):  # noqa: D102
        return LabelCrossEntropy(settings.label_smoothing)

    def metrics(self):  # noqa: D102
        return [TokenAccuracy(pad_id=-1, name="accuracy")]

    def weigh(self, inputs, labels):
        """Returns 1 for the first piece of each word, and 0 for all else."""
        real = tf.not_equal(inputs, self.pad_id)  # rows that pad a replica's batch are not
        return tf.cast(real & (labels >= 0), tf.float32)


def _spread(ids, first, labels, right):
    """The labels of words in the places of their first pieces, as flat as `ids`; else `NONE`."""
    begins = tf.gather(ids.row_splits[:-1], first.value_rowids()) + first.flat_values
    of_words = tf.boolean_mask(labels.flat_values, tf.gather(right, labels.value_rowids()))
    places = tf.boolean_mask(begins, tf.gather(right, first.value_rowids()))
    none = tf.fill(tf.shape(ids.flat_values), NONE)
    spread = tf.tensor_scatter_nd_update(none, tf.expand_dims(places, 1), of_words)
    return tf.where(tf.gather(right, ids.value_rowids()), spread, WRONG)


@keras.saving.register_keras_serializable(package="keras_transformer")
class LabelCrossEntropy(ClassCrossEntropy):
    """`ClassCrossEntropy` of every position, for labels of which some are -1 and do not count.

    Args:
        label_smoothing: Share of the probability that is spread over all classes.
        name: Name of the loss.

    Call arguments:
        y_true: Integer labels, [B, S]; of those below 0 the loss means nothing.
        y_pred: Logits, [B, S, C].
    """

    def call(self, y_true, y_pred):
        return super().call(tf.maximum(y_true, 0), y_pred)  # [B, S]
