"""Any Keras loss in the learner: its mean over the counted labels, for any batches."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from batches import datasets
from support import on_two_devices, randomise, sentences

from keras_transformer import LanguageModel
from keras_transformer.models import ClassifierConfig, LanguageModelConfig, TextClassifier
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.losses.metrics import Perplexity, TokenAccuracy

SIZES = {
    "vocab_size": 19, "num_layers": 1, "d_model": 6, "d_ff": 7, "num_heads": 2, "max_length": 11,
    "dropout": 0.0,
}  # fmt: skip
RATE = 0.3


def make_classifier():
    config = ClassifierConfig(**SIZES, labels=("a", "b", "c"), pooling="attention")
    return randomise(TextClassifier(config))


def texts(lengths, labels, width=None, seed=0):
    """Returns a batch of texts and labels; a length of 0 is a row of padding."""
    return sentences(lengths, width=width, seed=seed), np.array(labels, "int32")


# Rows of padding also have a label: the label of an empty text.
BATCHES = [texts([5, 0, 9, 2], [2, 0, 0, 1]), texts([3, 1], [1, 1], width=4, seed=1)]


def counted(inputs, labels):
    """Returns weights: a quarter for texts with the label `b`, zero for rows of padding."""
    real = tf.reduce_any(tf.not_equal(inputs, 0), axis=1)
    weights = tf.where(tf.equal(labels, 1), 0.25, 1.0)
    return tf.where(real, weights, 0.0)


def make_learner(model, weigh=counted, rate=RATE, **options):
    metrics = [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
    learner = Learner(model, weigh, unit="examples", accumulate=options.pop("accumulate", 1))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    learner.compile(keras.optimizers.SGD(rate), loss, metrics, **options)
    return learner


def by_hand(model, batches):
    """Returns losses and weights of all texts, padding included, in float64."""
    losses, weights, right = [], [], []
    for tokens, labels in batches:
        for row, label in zip(tokens, labels, strict=True):
            logits = np.asarray(model(row[None])[0], "float64")
            losses.append(np.log(np.exp(logits).sum()) - logits[label])
            weights.append(0.0 if not row.any() else 0.25 if label == 1 else 1.0)
            right.append(np.argmax(logits) == label)
    return np.array(losses), np.array(weights), np.array(right)


def after_a_plain_step(model, batches):
    """Takes a step of gradient descent on the weighted mean over all texts of all batches."""
    with tf.GradientTape() as tape:
        losses, weights = [], []
        for tokens, labels in batches:
            log_p = tf.nn.log_softmax(model(tokens, training=True))
            losses.append(-tf.gather(log_p, labels, batch_dims=1))
            weights.append(counted(tokens, labels))
        losses, weights = tf.concat(losses, 0), tf.concat(weights, 0)
        loss = tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)
    gradients = tape.gradient(loss, model.trainable_variables)
    weights = zip(model.trainable_variables, gradients, strict=True)
    return [np.asarray(v) - RATE * np.asarray(tf.convert_to_tensor(g)) for v, g in weights]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("accumulate", "jit_compile"), [(2, False), pytest.param(1, True, marks=pytest.mark.slow)]
)
def test_an_update_equals_a_plain_step(accumulate, jit_compile):
    batches = BATCHES[:accumulate]
    model = make_classifier()
    expected = after_a_plain_step(model, batches)
    losses, weights, _ = by_hand(model, batches)
    learner = make_learner(model, accumulate=accumulate, jit_compile=jit_compile)
    data = batches[0] if accumulate == 1 else tuple(batches)
    history = learner.fit(datasets(data), verbose=0, shuffle=False).history
    for ours, theirs in zip(model.trainable_variables, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=0, atol=1e-6, err_msg=ours.path)
    np.testing.assert_allclose(history["loss"], [np.average(losses, weights=weights)], rtol=1e-5)
    assert history["examples"] == [int(weights.sum())] == [learner.seen.numpy()]


@pytest.mark.slow
def test_padding_rows_do_not_change_an_update():
    tokens, labels = BATCHES[0]
    models = []
    for rows in ([0, 1, 2, 3], [0, 2, 3]):
        models.append(make_classifier())
        learner = make_learner(models[-1])
        learner.fit(datasets((tokens[rows], labels[rows])), verbose=0, shuffle=False)
    for ours, theirs in zip(models[0].weights, models[1].weights, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=0, atol=1e-6)


def test_evaluate_returns_weighted_means_over_unequal_batches():
    model = make_classifier()
    losses, weights, right = by_hand(model, BATCHES)
    assert 0 < np.average(right, weights=weights) < 1
    learner = make_learner(model)
    for _ in range(2):  # metrics are reset in between
        figures = learner.evaluate(datasets(*BATCHES), verbose=0, return_dict=True)
        assert set(figures) == {"loss", "accuracy"}
        for name, values in (("loss", losses), ("accuracy", right)):
            expected = np.average(values, weights=weights)
            np.testing.assert_allclose(figures[name], expected, rtol=1e-5, err_msg=name)
    padding = [np.zeros_like(array) for array in BATCHES[0]]
    again = learner.evaluate(datasets(*BATCHES, tuple(padding)), verbose=0, return_dict=True)
    assert again == figures


def test_a_users_model_learns_with_the_name_of_a_loss():
    """The result equals plain Keras, where each label has a weight of 1."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(13, 3)).astype("float32"), rng.normal(size=13).astype("float32")
    ours, plain = (
        keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, name="line")]) for _ in range(2)
    )
    plain.set_weights(ours.get_weights())
    learner = Learner(ours, weigh=lambda inputs, labels: tf.ones_like(labels), unit="examples")
    learner.compile(keras.optimizers.SGD(RATE), "MeanSquaredError")
    plain.compile(keras.optimizers.SGD(RATE), "MeanSquaredError", jit_compile=False)
    histories = [
        model.fit(x, y, batch_size=13, epochs=3, shuffle=False, verbose=0).history["loss"]
        for model in (learner, plain)
    ]
    np.testing.assert_allclose(*histories, rtol=1e-5)
    for one, two in zip(ours.weights, plain.weights, strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=0, atol=1e-6)


@pytest.mark.slow
def test_cross_entropy_with_and_without_whole_logits_is_the_same():
    """A language model learns the same whether or not all of its logits exist at once."""
    labels = sentences([7, 3, 1], seed=1, width=8)
    tokens = np.roll(labels, 1, axis=1)
    tokens[:, 0] = 2
    figures, weights = [], []
    for metrics in (None, [Perplexity(), TokenAccuracy()]):
        model = randomise(LanguageModel(LanguageModelConfig(**SIZES)))
        learner = Learner(model)
        learner.compile(keras.optimizers.SGD(RATE), LabelSmoothedCrossEntropy(0.1), metrics)
        history = learner.fit(datasets((tokens, labels)), verbose=0, shuffle=False).history
        measured = learner.evaluate(datasets((tokens, labels)), verbose=0, return_dict=True)
        figures.append({**{name: value for name, (value,) in history.items()}, **measured})
        weights.append(model.get_weights())
    assert figures[0].keys() == figures[1].keys() == {
        "loss", "tokens", "perplexity", "token_accuracy"
    }  # fmt: skip
    for name, value in figures[0].items():
        np.testing.assert_allclose(figures[1][name], value, rtol=1e-5, err_msg=name)
    for ours, theirs in zip(*weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


TWO_REPLICAS = """
from test_objectives import make_classifier, make_learner, texts
from keras_transformer.training.data.shards import cut_batches

# Of the batches one replica gets a row more, of the last one the other replica gets none.
BATCHES = [texts([5, 3, 9], [2, 1, 0]), texts([2, 8, 8], [0, 1, 1]), texts([4], [1], seed=2)]

def train(strategy):
    batches = cut_batches(datasets(*BATCHES).repeat(), strategy, 0)
    with strategy.scope():
        model = make_classifier()
        learner = make_learner(model)
        learner.optimizer.build(learner.trainable_variables)
        figures = learner.fit(batches, steps_per_epoch=3, verbose=0, shuffle=False).history
        figures["measured"] = learner.evaluate(batches, steps=3, verbose=0, return_dict=True)
    figures["seen"] = int(learner.seen.value.numpy())
    return figures, [weight.value.numpy().ravel().tolist() for weight in model.weights]

one = train(tf.distribute.get_strategy())
print(json.dumps([one, train(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))]))
"""


@pytest.mark.long
@pytest.mark.slow  # a process that imports TensorFlow
def test_two_replicas_equal_one_device():
    one, two = on_two_devices(TWO_REPLICAS)
    assert one[0]["seen"] == two[0]["seen"] > 0
    np.testing.assert_allclose(two[0]["loss"], one[0]["loss"], rtol=1e-5)
    assert set(one[0]["measured"]) == set(two[0]["measured"]) == {"loss", "accuracy"}
    for name, value in one[0]["measured"].items():
        np.testing.assert_allclose(two[0]["measured"][name], value, rtol=1e-5, err_msg=name)
    for ours, theirs in zip(two[1], one[1], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
