"""The training of token labelling."""

import keras
import tensorflow as tf

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
    def texts(self):  # noqa: D102
        return {0: self.tokenizers.source, 1: self.tokenizers.source}  # as long as each other

    def encode(self, words, labels):
        """Returns token ids, and for each of them a label, ragged `[B, (S)]`.

        A label is its place plus 1, and 0 where there is none; -1 in all places of an example with
        an unknown label, or with more or fewer labels than words.
        """
        ids, first, _ = encode_words(self.tokenizers.source, words)
        names = tf.strings.split(labels)  # [B, (W)]
        places = tf.argmax(
            tf.equal(tf.expand_dims(names.flat_values, 1), tf.constant(self.config.labels)), axis=1
        )
        known = tf.reduce_any(
            tf.equal(tf.expand_dims(names.flat_values, 1), tf.constant(self.config.labels)), axis=1
        )
        right = tf.reduce_all(names.with_flat_values(known), axis=1)
        right &= tf.equal(names.row_lengths(), first.row_lengths())  # [B]
        numbers = tf.where(known, tf.cast(places, tf.int32) + 1, -1)
        return ids, ids.with_flat_values(self._spread(ids, first, names, numbers, right))

    def _spread(self, ids, first, names, numbers, right):
        """The numbers of words in the places of their first pieces, as flat as `ids`."""
        begins = tf.gather(ids.row_splits[:-1], first.value_rowids()) + first.flat_values
        kept = tf.gather(right, names.value_rowids())
        of_words = tf.boolean_mask(numbers, kept)
        places = tf.boolean_mask(begins, tf.gather(right, first.value_rowids()))
        size = tf.shape(ids.flat_values)[:1]
        spread = tf.scatter_nd(tf.expand_dims(places, 1), of_words, tf.cast(size, tf.int64))
        return tf.where(tf.gather(right, ids.value_rowids()), spread, -1)

    def explain(self, column):
        """Returns what labels must be."""
        return f"a label for each word, each one of {', '.join(self.config.labels)}"

    def assemble(self, words, labels):
        """Returns a batch. Labels come padded with `pad_id`, which is left out by the ids."""
        return words, tf.where(tf.equal(words, self.pad_id), -1, labels - 1)

    def loss(self, settings):  # noqa: D102
        return LabelCrossEntropy(settings.label_smoothing)

    def metrics(self):  # noqa: D102
        return [TokenAccuracy(pad_id=-1, name="accuracy")]

    def weigh(self, inputs, labels):
        """Returns 1 for the first piece of each word, and 0 for all else."""
        real = tf.not_equal(inputs, self.pad_id)  # rows that pad a replica's batch are not
        return tf.cast(real & (labels >= 0), tf.float32)


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
