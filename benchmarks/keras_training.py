"""Training steps of Keras models: compilation, and steps like those of `fit`."""

import math

import keras
import tensorflow as tf
from keras import ops
from task import PAD_ID


class KerasTraining:
    """A compiled Keras model and one batch.

    A step is one call of the model's `train_function` with an iterator of `tf.data`, as in `fit`,
    but without its callbacks and progress bar.

    Args:
        model: A compiled model from `{"source", "target"}` to logits.
        task: A `Task`.

    Attributes:
        metadata: `parameters`, their number.
    """

    def __init__(self, model, task):
        source, target, labels = task.batch()
        dataset = tf.data.Dataset.from_tensors(({"source": source, "target": target}, labels))
        self._batches = iter(dataset.repeat())
        self._model = model
        model.make_train_function()
        self._step = model.train_function
        weights = model.trainable_weights
        self.metadata = {"parameters": sum(math.prod(weight.shape) for weight in weights)}

    def run(self, steps):
        """Trains `steps` steps; returns the mean of their losses."""
        self._model.reset_metrics()
        for _ in range(steps):
            logs = self._step(self._batches)
        return {"loss": float(logs["loss"])}


def adam(task, kind=keras.optimizers.Adam):
    """Returns the optimizer of section 5.3, Keras's or ours, with a constant learning rate."""
    return kind(task.learning_rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9)


def compiled(model, task):
    """Compiles a model of another library as its users would, and returns its `KerasTraining`."""
    model.compile(adam(task), keras_loss(task), jit_compile=task.jit_compile)
    return KerasTraining(model, task)


def keras_loss(task):
    """Returns the label-smoothed cross-entropy per token without padding, from Keras's functions.

    Keras's sparse cross-entropy does not support label smoothing, so labels become one-hot tensors
    [B, T, V]. With `closed_form_loss`, an equivalent formula without such tensors is used instead,
    differentiated by TensorFlow.
    """

    def loss(labels, logits):
        labels = ops.cast(labels, "int32")  # Keras passes them as floats
        if task.closed_form_loss:
            at_label = ops.take_along_axis(logits, ops.expand_dims(labels, -1), axis=-1)[..., 0]
            smooth = (1 - task.label_smoothing) * at_label
            smooth += task.label_smoothing * ops.mean(logits, axis=-1)
            losses = ops.logsumexp(logits, axis=-1) - smooth  # [B, T]
        else:
            losses = keras.losses.categorical_crossentropy(
                ops.one_hot(labels, task.vocab_size),
                logits,
                from_logits=True,
                label_smoothing=task.label_smoothing,
            )  # [B, T]
        real = ops.cast(labels != PAD_ID, "float32")
        return ops.sum(losses * real) / ops.sum(real)

    return loss
