"""The training of a causal language model."""

import tensorflow as tf

from keras_transformer.fields import Tokens
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.tasks.task import TextTraining


class LanguageModellingTraining(TextTraining):
    """Texts; the loss is the smoothed cross-entropy of every token, its predecessors given.

    A batch is (tokens [B, T], labels [B, T]), int32: a row of `tokens` begins with the id that
    begins texts, a row of `labels` is the same text one to the left and ends in the one that ends
    them. With packed rows the inputs are what `unpacked` makes of the labels.
    """

    @property
    def fields(self):  # noqa: D102
        return {"text": Tokens(self.tokenizers.target)}

    def assemble(self, text):  # noqa: D102
        if self.packed:
            return unpacked(text, self.bos_id, self.eos_id, self.pad_id), text
        return self.shifted(text), text

    def loss(self, settings):  # noqa: D102
        return LabelSmoothedCrossEntropy(settings.label_smoothing, self.pad_id)


def unpacked(labels, bos_id, eos_id, pad_id):
    """Returns what a model reads of rows that `pack_texts` made, and which text is where.

    Args:
        labels: The rows, padded, int32 `[B, T]`.
        bos_id: What each text begins with.
        eos_id: What each text ends with, but for a piece that fills its row.
        pad_id: Padding.

    Returns:
        Dictionary of int32 `[B, T]`: `tokens`, the row one to the right, with `bos_id` at the
        beginning of each text; `documents`, the number of the text in its row, from 1, with a
        number of its own for padding; and `places`, each token's position in its text, from 0.
    """
    shape = tf.shape(labels)
    before = tf.concat([tf.fill([shape[0], 1], eos_id), labels[:, :-1]], axis=1)
    begins = tf.equal(before, eos_id)
    documents = tf.cumsum(tf.cast(begins, tf.int32), axis=1)
    tokens = tf.where(begins, bos_id, before)
    # A document begins where its number would be put into the row, which rises.
    first = tf.searchsorted(documents, documents, side="left")
    places = tf.range(shape[1]) - first
    return {
        "tokens": tf.where(tf.equal(labels, pad_id), pad_id, tokens),
        "documents": documents,
        "places": places,
    }
