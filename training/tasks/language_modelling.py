"""Training of a causal language model."""

from typing import Any

import tensorflow as tf

from keras_transformer.fields import Tokens
from keras_transformer.fields.field import Field
from keras_transformer.training.tasks.task import TextTraining


class LanguageModellingTraining(TextTraining):
    """Training on texts with the smoothed cross-entropy of every token, given the tokens before it.

    A batch is (tokens [B, T], labels [B, T]), int32. A row of `tokens` begins with `bos_id`. A row
    of `labels` is the same text, shifted left by one, and ends in `eos_id`. With packed rows
    `unpacked` makes the inputs from the labels.

    If no token begins a text for the model (`attends_to_start` = false), the label of its first
    token is `pad_id`, so that it does not count in training and validation, as in
    `TextGenerator.score`.
    """

    @property
    def fields(self) -> dict[str, Field]:  # noqa: D102
        return {"text": Tokens(self.tokenizers.target)}

    def assemble(self, text) -> tuple:  # noqa: D102
        if self.packed:
            inputs = unpacked(text, self.bos_id, self.eos_id, self.pad_id)
            return inputs, self._predicted(text, inputs["places"])
        return self.shifted(text), self._predicted(text, tf.range(tf.shape(text)[1]))

    def _predicted(self, labels, places):
        """Returns the labels `[B, T]` that count; `places` are positions, `[B, T]` or `[T]`."""
        if self.config is None or not self.config.decoder.hides_start:
            return labels
        first = tf.equal(places, 0) & tf.not_equal(labels, self.eos_id)
        return tf.where(first, self.pad_id, labels)


def unpacked(labels, bos_id, eos_id, pad_id) -> dict[str, Any]:
    """Returns the inputs of a model for packed rows: see `pack_texts`.

    Args:
        labels: The packed rows, padded, int32 `[B, T]`.
        bos_id: Id that begins each text.
        eos_id: Id that ends each text, except for a part of a longer text that fills its row.
        pad_id: Id of padding.

    Returns:
        Dictionary of int32 `[B, T]`: `tokens`, the labels shifted right by one, with `bos_id` at
        the beginning of each text; `documents`, the number of the text in its row, counted from 1,
        with a number of its own for padding; and `places`, the position of each token in its text,
        counted from 0.
    """
    shape = tf.shape(labels)
    before = tf.concat([tf.fill([shape[0], 1], eos_id), labels[:, :-1]], axis=1)
    begins = tf.equal(before, eos_id)
    documents = tf.cumsum(tf.cast(begins, tf.int32), axis=1)
    tokens = tf.where(begins, bos_id, before)
    # Numbers of documents rise in a row, so that a binary search finds where each one begins.
    first = tf.searchsorted(documents, documents, side="left")
    places = tf.range(shape[1]) - first
    return {
        "tokens": tf.where(tf.equal(labels, pad_id), pad_id, tokens),
        "documents": documents,
        "places": places,
    }
