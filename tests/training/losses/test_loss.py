"""The smoothed loss equals one-hot targets in float64 NumPy, in value and in gradient."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.training.losses.cross_entropy import (
    LabelSmoothedCrossEntropy,
    smoothed_cross_entropy,
)
from keras_transformer.training.losses.metrics import Perplexity, TokenAccuracy

B, T, V = 3, 5, 11
PAD = 4


def log_softmax(row):
    return row - row.max() - np.log(np.exp(row - row.max()).sum())


def smoothed_target(label, size, smoothing):
    target = np.full(size, smoothing / size)
    target[label] += 1 - smoothing
    return target


def reference(labels, logits, smoothing):
    """Returns loss and gradient of every position from explicit targets in float64."""
    losses, gradients = np.zeros(labels.shape), np.zeros(logits.shape)
    for place in np.ndindex(labels.shape):
        target = smoothed_target(labels[place], logits.shape[-1], smoothing)
        log_p = log_softmax(logits[place].astype("float64"))
        losses[place] = -(target * log_p).sum()
        gradients[place] = np.exp(log_p) - target
    return losses, gradients


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, V, (B, T)).astype("int32")
    labels[0, 3:] = PAD
    labels[1, 1:] = PAD
    return labels, rng.normal(scale=3, size=(B, T, V)).astype("float32")


@pytest.mark.parametrize(("jit_compile", "smoothing"), [(False, 0.1), (True, 0.0), (True, 0.7)])
def test_every_position_equals_the_reference(batch, smoothing, jit_compile):
    labels, logits = batch
    upstream = np.random.default_rng(1).normal(size=(B, T)).astype("float32")

    @tf.function(jit_compile=jit_compile)
    def run(logits):
        losses = smoothed_cross_entropy(labels, logits, smoothing)
        return losses, tf.gradients(losses, logits, upstream)[0]

    losses, gradient = run(tf.constant(logits))
    expected, slopes = reference(labels, logits, smoothing)
    np.testing.assert_allclose(losses, expected, atol=1e-5)
    np.testing.assert_allclose(gradient, slopes * upstream[..., None], atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_logits_are_computed_in_float32(batch, dtype):
    labels, logits = batch
    halves = tf.cast(logits, dtype)
    with tf.GradientTape() as tape:
        tape.watch(halves)
        losses = smoothed_cross_entropy(labels, halves, 0.1)
    gradient = tape.gradient(losses, halves)
    expected, slopes = reference(labels, tf.cast(halves, "float32").numpy(), 0.1)
    assert (losses.dtype, gradient.dtype) == ("float32", dtype)
    np.testing.assert_allclose(losses, expected, atol=1e-5)
    # The gradient is rounded once to the dtype of the logits: half a unit in the last place.
    rounding = {"bfloat16": 2**-8, "float16": 2**-11}[dtype]
    np.testing.assert_allclose(tf.cast(gradient, "float32"), slopes, atol=1e-5, rtol=rounding)


def test_large_logits_stay_finite():
    logits = tf.constant([[[1e4, -1e4, 0.0]]])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = smoothed_cross_entropy(tf.constant([[1]]), logits, 0.1)
    expected, slopes = reference(np.array([[1]]), logits.numpy(), 0.1)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(loss, logits), slopes, atol=1e-6)


def test_loss_is_the_sum_over_real_tokens_divided_by_their_number(batch):
    labels, logits = batch
    variable = tf.Variable(logits)
    with tf.GradientTape() as tape:
        loss = LabelSmoothedCrossEntropy(0.1, pad_id=PAD)(labels, variable)
    losses, slopes = reference(labels, logits, 0.1)
    real = labels != PAD
    np.testing.assert_allclose(loss, losses[real].sum() / real.sum(), rtol=1e-6)
    expected = np.where(real[..., None], slopes, 0) / real.sum()
    np.testing.assert_allclose(tape.gradient(loss, variable), expected, atol=1e-6)


def test_the_number_of_padding_positions_changes_nothing(batch):
    labels, logits = batch
    loss = LabelSmoothedCrossEntropy(0.1, pad_id=PAD)
    wider = np.pad(labels, ((0, 2), (0, 3)), constant_values=PAD)
    more = np.pad(logits, ((0, 2), (0, 3), (0, 0)), constant_values=9.0)
    np.testing.assert_allclose(loss(wider, more), loss(labels, logits), rtol=1e-6)


def test_a_batch_of_only_padding_has_loss_zero():
    logits = tf.Variable(np.ones((2, 3, V), "float32"))
    with tf.GradientTape() as tape:
        loss = LabelSmoothedCrossEntropy(pad_id=PAD)(np.full((2, 3), PAD), logits)
    assert loss == 0
    np.testing.assert_array_equal(tape.gradient(loss, logits), np.zeros((2, 3, V)))


def test_an_implicit_keras_mask_changes_nothing(batch):
    labels, logits = batch
    loss = LabelSmoothedCrossEntropy(0.1, pad_id=PAD)
    masked = tf.constant(logits)
    masked._keras_mask = tf.constant(np.arange(B * T).reshape(B, T) % 2 == 0)
    assert loss(labels, masked) == loss(labels, tf.constant(logits))


def test_loss_and_metrics_can_be_serialised(batch):
    labels, logits = batch
    loss = LabelSmoothedCrossEntropy(0.3, pad_id=PAD)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert again(labels, logits) == loss(labels, logits)
    for metric in (Perplexity(PAD), TokenAccuracy(PAD)):
        config = keras.saving.serialize_keras_object(metric)
        again = keras.saving.deserialize_keras_object(config)
        for instance in (metric, again):
            instance.update_state(labels, logits)
        assert again.result() == metric.result()


def test_metrics_count_real_tokens_over_several_batches(batch):
    labels, logits = batch
    real = labels != PAD
    # Batches with different numbers of rows, columns and real tokens.
    areas = [(slice(0, 1), slice(0, 3)), (slice(1, 3), slice(0, 5))]
    perplexity, accuracy = Perplexity(PAD), TokenAccuracy(PAD)
    for area in areas:
        perplexity.update_state(labels[area], logits[area])
        accuracy.update_state(labels[area], logits[area])
    losses, _ = reference(labels, logits, 0.0)
    np.testing.assert_allclose(perplexity.result(), np.exp(losses[real].mean()), rtol=1e-5)
    right = (logits.argmax(-1) == labels)[real]
    np.testing.assert_allclose(accuracy.result(), right.mean(), rtol=1e-6)


def test_unsupported_arguments_are_refused(batch):
    with pytest.raises(ValueError, match="`label_smoothing` must be at least 0 .* Received: .*=1"):
        LabelSmoothedCrossEntropy(1.0)


def test_metrics_apply_weights_of_positions_besides_padding(batch):
    labels, logits = batch
    weights = np.random.default_rng(3).random(labels.shape).astype("float32")
    weights[0, 0] = 0.0
    own = weights * (labels != PAD)
    perplexity, accuracy = Perplexity(PAD), TokenAccuracy(PAD)
    for metric in (perplexity, accuracy):
        metric.update_state(labels, logits, sample_weight=weights)
    losses, _ = reference(labels, logits, 0.0)
    expected = np.exp(np.average(losses, weights=own))
    np.testing.assert_allclose(perplexity.result(), expected, rtol=1e-5)
    right = np.average(logits.argmax(-1) == labels, weights=own)
    np.testing.assert_allclose(accuracy.result(), right, rtol=1e-5)


def counted_per_sentence():
    """Rows with different losses, for every form in which Keras passes a weight per sentence.

    There are as many sentences as positions: [B] must not be taken for [T].
    """
    rng = np.random.default_rng(5)
    labels = rng.integers(0, V, (T, T)).astype("int32")
    labels[1, 2:] = labels[3, 1:] = PAD
    logits = rng.normal(scale=3, size=(T, T, V)).astype("float32")
    weights = np.array([0.0, 3.0, 0.5, 1.0, 2.0], "float32")
    return labels, logits, weights, weights[:, None] * (labels != PAD)


@pytest.mark.parametrize("form", ["[B]", "[B, 1]", "[B, T]", "[B, T, 1]", "list"])
def test_a_weight_per_sentence_applies_to_its_real_tokens(form):
    labels, logits, weights, own = counted_per_sentence()
    given = {
        "[B]": weights,
        "[B, 1]": weights[:, None],
        "[B, T]": np.repeat(weights[:, None], T, axis=1),
        "[B, T, 1]": np.repeat(weights[:, None, None], T, axis=1),
        "list": weights.tolist(),
    }[form]
    perplexity, accuracy = Perplexity(PAD), TokenAccuracy(PAD)
    for metric in (perplexity, accuracy):
        metric.update_state(labels, logits, sample_weight=given)
    losses, _ = reference(labels, logits, 0.0)
    expected = np.exp(np.average(losses, weights=own))
    np.testing.assert_allclose(perplexity.result(), expected, rtol=1e-5)
    right = np.average(logits.argmax(-1) == labels, weights=own)
    np.testing.assert_allclose(accuracy.result(), right, rtol=1e-5)
    smoothed, _ = reference(labels, logits, 0.1)
    loss = LabelSmoothedCrossEntropy(0.1, pad_id=PAD)(labels, logits, sample_weight=given)
    np.testing.assert_allclose(loss, np.average(smoothed, weights=own), rtol=1e-5)


def test_evaluate_with_a_weight_per_sentence():
    """All the way through Keras, in batches of different weight."""
    labels, logits, weights, own = counted_per_sentence()
    model = keras.Sequential([keras.Input((T, V)), keras.layers.Identity()])
    metrics = [Perplexity(PAD), TokenAccuracy(PAD)]
    model.compile(loss=LabelSmoothedCrossEntropy(0.0, PAD), weighted_metrics=metrics)
    got = model.evaluate(logits, labels, 2, sample_weight=weights, verbose=0, return_dict=True)
    losses, _ = reference(labels, logits, 0.0)
    np.testing.assert_allclose(
        got["perplexity"], np.exp(np.average(losses, weights=own)), rtol=1e-5
    )
    right = np.average(logits.argmax(-1) == labels, weights=own)
    np.testing.assert_allclose(got["token_accuracy"], right, rtol=1e-5)


def test_labels_may_have_an_axis_of_one():
    """As from a data set in which every label is a row of its own."""
    labels, logits, weights, _ = counted_per_sentence()
    for make in (Perplexity, TokenAccuracy):
        flat, deep = make(PAD), make(PAD)
        flat.update_state(labels, logits, weights)
        deep.update_state(labels[..., None], logits, weights)
        assert flat.result() == deep.result()
    loss = LabelSmoothedCrossEntropy(0.1, pad_id=PAD)
    assert loss(labels[..., None], logits) == loss(labels, logits)


@pytest.mark.parametrize("shape", [(B + 1,), (B, T + 1), (B, T, 2), (T,)])
def test_weights_of_another_shape_are_refused(batch, shape):
    message = r"`sample_weight` must be \[3\], a weight for each example, .*\[3, 5\]"
    for call in (Perplexity().update_state, TokenAccuracy().update_state):
        with pytest.raises(ValueError, match=message):
            call(*batch, sample_weight=np.ones(shape))
    with pytest.raises(ValueError, match=message):
        LabelSmoothedCrossEntropy()(*batch, sample_weight=np.ones(shape))


TWO_REPLICAS = """
import json, sys
import keras, numpy as np, tensorflow as tf
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

# Rows 0-1 go to the first replica, 2-3 to the second: 9 real tokens against 2.
labels = np.array([[1, 2, 3, 4, 5], [6, 5, 4, 3, 0], [2, 0, 0, 0, 0], [1, 0, 0, 0, 0]])
tokens = np.array([[6, 1, 2, 3, 4], [2, 3, 1, 4, 5], [3, 3, 3, 3, 3], [5, 1, 1, 1, 1]])

def train(strategy):
    with strategy.scope():
        table = keras.layers.Embedding(7, 7, embeddings_initializer=keras.initializers.Identity())
        model = keras.Sequential([keras.Input((None,), dtype="int32"), table])
        model.compile(keras.optimizers.SGD(1.0), LabelSmoothedCrossEntropy(0.1))
        batches = tf.data.Dataset.from_tensors((tokens, labels)).repeat(3)
        history = model.fit(batches, verbose=0)
    return history.history["loss"], table.embeddings.numpy().tolist()

devices = ["CPU:0", "CPU:1"]
one, two = train(tf.distribute.get_strategy()), train(tf.distribute.MirroredStrategy(devices))
print(json.dumps([one, two]))
"""


@pytest.mark.long
@pytest.mark.slow
def test_two_replicas_of_unequal_length_equal_one_device():
    process = subprocess.run(
        [sys.executable, "-c", TWO_REPLICAS], capture_output=True, text=True, timeout=120
    )
    assert process.returncode == 0, process.stderr
    (loss, table), (replicas_loss, replicas_table) = json.loads(process.stdout.splitlines()[-1])
    np.testing.assert_allclose(replicas_loss, loss, atol=1e-6)
    np.testing.assert_allclose(replicas_table, table, atol=1e-6)
    # The mean of the replicas' means would have moved the table elsewhere.
    assert not np.allclose(table, np.eye(7), atol=1e-2)
