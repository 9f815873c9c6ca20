"""The moving average is in the model for the duration of a block only."""

import keras
import numpy as np
import pytest
from batches import LENGTHS, batch, datasets, make_learner
from support import on_two_devices

from keras_transformer.training.loop.moving_average import averaged_weights

BATCHES = [batch(LENGTHS, seed) for seed in range(3)]


class Trace(keras.callbacks.Callback):
    """Records the weights after every update."""

    def on_train_begin(self, logs=None):
        self.weights = []

    def on_train_batch_end(self, batch, logs=None):
        self.weights.append(copies(self.model))


class Averaged(Trace):
    """Records the weights inside the block after every update, and the restored weights."""

    def on_train_begin(self, logs=None):
        super().on_train_begin()
        self.averages = []

    def on_train_batch_end(self, batch, logs=None):
        with averaged_weights(self.model):
            self.averages.append(copies(self.model))
        super().on_train_batch_end(batch, logs)


def copies(learner):
    return [weight.numpy().copy() for weight in learner.trainable_variables]


def trained(model, callback, policy, **ema):
    keras.config.set_dtype_policy(policy)
    learner = make_learner(model(), keras.optimizers.Adam(0.01, **ema))
    learner.fit(datasets(*BATCHES), verbose=0, shuffle=False, callbacks=[callback])
    return callback


@pytest.fixture
def tiny_model(small_model):
    return lambda: small_model(num_layers=1, num_decoder_layers=1)


@pytest.mark.long
@pytest.mark.slow
def test_the_block_sees_the_average_and_training_does_not(tiny_model, policy="mixed_float16"):
    plain = trained(tiny_model, Trace(), policy)
    ours = trained(tiny_model, Averaged(), policy, use_ema=True, ema_momentum=0.6)
    for mine, others in zip(ours.weights, plain.weights, strict=True):
        for one, two in zip(mine, others, strict=True):
            np.testing.assert_array_equal(one, two)
    average = [weight.astype("float64") for weight in plain.weights[0]]
    for update, weights in enumerate(plain.weights):
        if update:
            pairs = zip(average, weights, strict=True)
            average = [0.6 * mean + 0.4 * weight for mean, weight in pairs]
        for one, two in zip(ours.averages[update], average, strict=True):
            np.testing.assert_allclose(one, two, rtol=0, atol=1e-6)
    assert max(np.abs(a - w).max() for a, w in zip(average, weights, strict=True)) > 1e-3


@pytest.mark.slow
def test_the_trained_weights_are_restored_after_an_exception(tiny_model):
    learner = make_learner(tiny_model(), keras.optimizers.Adam(0.01, use_ema=True))
    callback = Trace()
    learner.fit(datasets(*BATCHES), verbose=0, shuffle=False, callbacks=[callback])
    for weight, value in zip(learner.trainable_variables, callback.weights[-1], strict=True):
        weight.assign(value)  # `fit` leaves the average in the model
    with pytest.raises(KeyboardInterrupt), averaged_weights(learner):
        assert not np.array_equal(copies(learner)[0], callback.weights[-1][0])
        raise KeyboardInterrupt
    for one, two in zip(copies(learner), callback.weights[-1], strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_without_an_average_the_block_sees_the_weights(tiny_model):
    learner = make_learner(tiny_model())
    before = copies(learner)
    with averaged_weights(learner):
        for one, two in zip(copies(learner), before, strict=True):
            np.testing.assert_array_equal(one, two)


TWO_REPLICAS = """
batches = datasets(*[batch([(7, 5), (2, 7), (4, 1), (3, 3)], seed) for seed in range(3)])

def averages(strategy):
    with strategy.scope():
        model = randomise(Transformer(small_config(num_layers=1, num_decoder_layers=1)))
        learner = make_learner(model, keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.6))
        learner.fit(batches, verbose=0, shuffle=False)  # ends with the average in the model
    return [weight.value.numpy().ravel().tolist() for weight in learner.trainable_variables]

one = averages(tf.distribute.get_strategy())
print(json.dumps([one, averages(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))]))
"""


@pytest.mark.slow
@pytest.mark.long
def test_two_replicas_have_the_average_of_one_device():
    one, two = on_two_devices(TWO_REPLICAS)
    for ours, theirs in zip(two, one, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
