"""Script that test_conformance.py runs in a fresh process: loads, calls and writes outputs.

Usage: fresh_process.py FOLDER, which holds ROW.keras for every row. Writes loaded.npz with the
outputs of each loaded model, and replicas.npz with the results of two replicas.
"""

import pathlib
import sys

import conftest  # noqa: F401  one thread, no GPU
import keras
import numpy as np
import tensorflow as tf
from conformance.rows import ROWS, inputs_of, random_model

from keras_transformer.layers import *  # noqa: F403  registers all layers
from keras_transformer.models import *  # noqa: F403  registers all models
from keras_transformer.tasks.question_answering.head import OUTSIDE

RATE = 0.1


def load_all(folder):
    models = {name: keras.saving.load_model(folder / f"{name}.keras") for name in ROWS}
    return {name: model(inputs_of(name)).numpy() for name, model in models.items()}


def gradients_towards_zero(model, inputs, replicas=1):
    """Returns outputs, this replica's share of the loss, and its gradients, which Keras adds up."""
    with tf.GradientTape() as tape:
        outputs = model(inputs, training=True)
        # The large outputs of masked positions would hide the rest.
        reached = tf.where(outputs > OUTSIDE, outputs, 0.0)
        loss = tf.reduce_mean(reached**2) / replicas
    return outputs, loss, tape.gradient(loss, model.trainable_variables)


def one_step(model, inputs):
    """Takes a step of gradient descent on one device; returns outputs, loss and weights."""
    outputs, loss, gradients = gradients_towards_zero(model, inputs)
    keras.optimizers.SGD(RATE).apply(gradients, model.trainable_variables)
    return {"outputs": outputs.numpy(), "loss": loss.numpy(), **weights_after(model)}


def one_step_on_two(strategy, name):
    """Takes the same step on two devices, each with half of the batch."""
    with strategy.scope():
        model = random_model(name)
        optimizer = keras.optimizers.SGD(RATE)
        optimizer.build(model.trainable_variables)

    def half(context):
        rank = context.replica_id_in_sync_group
        return {key: np.split(value, 2)[rank] for key, value in inputs_of(name).items()}

    @tf.function
    def step(inputs):
        outputs, loss, gradients = gradients_towards_zero(model, inputs, replicas=2)
        optimizer.apply(gradients, model.trainable_variables)
        return outputs, loss

    inputs = strategy.experimental_distribute_values_from_function(half)
    outputs, loss = strategy.run(step, args=(inputs,))
    outputs = np.concatenate(
        [output.numpy() for output in strategy.experimental_local_results(outputs)]
    )
    loss = strategy.reduce("SUM", loss, axis=None).numpy()
    return {"outputs": outputs, "loss": loss, **weights_after(model)}


def weights_after(model):
    return {f"weight_{n}": weight.numpy() for n, weight in enumerate(model.weights)}


def replicate_all():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    outputs = {}
    for name in ROWS:
        one, two = one_step(random_model(name), inputs_of(name)), one_step_on_two(strategy, name)
        outputs.update({f"{name}/one/{key}": value for key, value in one.items()})
        outputs.update({f"{name}/two/{key}": value for key, value in two.items()})
    return outputs


if __name__ == "__main__":
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    where = pathlib.Path(sys.argv[1])
    np.savez(where / "loaded.npz", **load_all(where))
    np.savez(where / "replicas.npz", **replicate_all())
