"""Training of the task `tally`."""

import keras
import tensorflow as tf

from keras_transformer.fields import Field, Tokens
from keras_transformer.training.tasks.task import TextTraining


class Number(Field):
    """Numbers in digits."""

    dtype = "float32"

    def encode(self, column):
        return tf.strings.to_number(column)


class TallyTraining(TextTraining):
    """Squared error of the number of each text."""

    @property
    def fields(self):
        return {"text": Tokens(self.tokenizers.source), "number": Number()}

    def assemble(self, text, number):
        return text, tf.expand_dims(number, 1)  # [B, S], [B, 1]

    def loss(self, settings):
        return keras.losses.MeanSquaredError(reduction="none")

    def metrics(self):
        return []

    def weigh(self, inputs, labels):
        return tf.cast(tf.reduce_any(inputs != self.pad_id, axis=1), tf.float32)
