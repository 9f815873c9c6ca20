"""The learner trains a Transformer on the mean over tokens and counts the tokens seen."""

import itertools
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from batches import LENGTHS, batch, datasets, make_learner
from support import on_two_devices

from keras_transformer.training.loop import objectives
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.losses import projected as projection
from keras_transformer.training.losses.cross_entropy import (
    LabelSmoothedCrossEntropy,
    smoothed_cross_entropy,
)
from keras_transformer.training.losses.metrics import Perplexity, TokenAccuracy
from keras_transformer.training.losses.projected import projected_cross_entropy
from keras_transformer.training.losses.r_drop import RDrop
from keras_transformer.training.losses.sim_cut import SimCut


@pytest.fixture
def tiny_model(small_model):
    return lambda: small_model(num_layers=1, num_decoder_layers=1)


@pytest.mark.slow
def test_losses_of_evaluate_are_means_over_tokens_of_unequal_batches(tiny_model):
    model = tiny_model()
    batches = [batch(LENGTHS[:1], seed=3), batch(LENGTHS[1:], seed=5, width=6)]
    learner = make_learner(model)
    figures = learner.evaluate(datasets(*batches), verbose=0, return_dict=True)
    smooth, plain, right = [], [], []
    for inputs, labels in batches:
        logits, real = model(inputs), labels != 0
        smooth.append(smoothed_cross_entropy(labels, logits, 0.1).numpy()[real])
        plain.append(smoothed_cross_entropy(labels, logits, 0.0).numpy()[real])
        right.append((np.argmax(logits, -1) == labels)[real])
    np.testing.assert_allclose(figures["loss"], np.concatenate(smooth).mean(), rtol=1e-5)
    expected = np.exp(np.concatenate(plain).mean())
    np.testing.assert_allclose(figures["perplexity"], expected, rtol=1e-5)
    np.testing.assert_allclose(figures["token_accuracy"], np.concatenate(right).mean(), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "jit_compile"), [(4, False), (4, True)])
def test_evaluate_returns_the_metrics_of_compile(tiny_model, monkeypatch, rows, jit_compile):
    """For any number of positions in a chunk of logits."""
    model = tiny_model()
    monkeypatch.setattr(projection, "CHUNK_BYTES", rows * 4 * model.config.tokens.vocab_size)
    inputs, labels = batch([(7, 5), (2, 3), (4, 1), (3, 6)], seed=3, width=8)
    labels[0, :2] = np.argmax(model(inputs), -1)[0, :2]  # otherwise no prediction would be right
    figures = make_learner(model, jit_compile=jit_compile).evaluate(
        datasets((inputs, labels)), verbose=0, return_dict=True
    )
    plain = {"perplexity": Perplexity(), "token_accuracy": TokenAccuracy()}
    for metric in plain.values():
        metric.update_state(labels, model(inputs))
    expected = {name: float(metric.result()) for name, metric in plain.items()}
    expected["loss"] = float(LabelSmoothedCrossEntropy(0.1)(labels, model(inputs)))
    assert figures.keys() == expected.keys() and 0.1 < figures["token_accuracy"] < 0.9
    for name in expected:
        np.testing.assert_allclose(figures[name], expected[name], rtol=1e-6, err_msg=name)


@pytest.mark.slow
def test_a_batch_of_padding_changes_no_metric(tiny_model):
    learner = make_learner(tiny_model())
    inputs, labels = batch(LENGTHS)
    padding = {name: np.zeros_like(tokens) for name, tokens in inputs.items()}
    figures = [
        learner.evaluate(datasets(*batches), verbose=0, return_dict=True)
        for batches in ([(inputs, labels)], [(inputs, labels), (padding, np.zeros_like(labels))])
    ]
    assert figures[0] == figures[1]


@pytest.mark.slow
def test_no_tensor_of_a_validation_contains_all_logits(tiny_model, monkeypatch):
    """XLA knows all shapes: every tensor of logits has the positions of a chunk."""
    model = tiny_model()
    inputs, labels = batch([(7, 5), (2, 3), (4, 1), (3, 6)], width=8)
    size = model.config.tokens.vocab_size
    monkeypatch.setattr(projection, "CHUNK_BYTES", 4 * 4 * size)
    learner = make_learner(model, jit_compile=True)
    graph = (
        tf.function(learner.test_step)
        .get_concrete_function((inputs, tf.constant(labels)))
        .graph.as_graph_def(add_shapes=True)
    )
    functions = [function.node_def for function in graph.library.function]
    shapes = [
        [dimension.size for dimension in shape.dim]
        for node in itertools.chain(graph.node, *functions)
        for shape in node.attr["_output_shapes"].list.shape
    ]
    logits = [
        shape for shape in shapes if shape[-1:] == [size] and shape != [model.config.d_model, size]
    ]
    assert logits and max(np.prod(shape) for shape in logits) <= 4 * size


MEMORY = """
import resource, sys
import keras, numpy as np
from keras_transformer import Transformer, TransformerConfig
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

config = TransformerConfig(
    vocab_size=37_000, num_layers=1, d_model=16, d_ff=16, num_heads=2, max_length=64
)
learner = Learner(Transformer(config))
learner.compile(keras.optimizers.Adam(1e-3), LabelSmoothedCrossEntropy(0.1))
tokens = np.random.default_rng(0).integers(4, 37_000, (40, 50)).astype("int32")
batch = {"source": tokens, "target": tokens}, tokens
if sys.argv[1] == "fit":
    learner.fit(*batch, batch_size=40, epochs=3, verbose=0)
else:
    learner.optimizer.build(learner.trainable_variables)  # which training does in any case
    learner.evaluate(*batch, batch_size=40, verbose=0)
print(peak())
"""


@pytest.mark.slow  # two processes that import TensorFlow
@pytest.mark.long
def test_a_validation_needs_no_more_memory_than_training():
    """With 37,000 tokens in the vocabulary and 2,000 positions; the logits alone take 282 MB."""
    pytest.importorskip("resource")
    peaks = {}
    for what in ("fit", "evaluate"):
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, what], capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stderr
        peaks[what] = float(done.stdout.splitlines()[-1])
    assert peaks["evaluate"] <= peaks["fit"], peaks


def test_one_update_equals_that_of_plain_keras(tiny_model):
    """`fit` changes the learner's Transformer as it changes a Transformer compiled by itself."""
    inputs, labels = batch(LENGTHS)
    wrapped, plain = tiny_model(), tiny_model()
    sgd = keras.optimizers.SGD  # Adam's first update is the sign of the gradient, even of 1e-9
    make_learner(wrapped, sgd(0.5)).fit(datasets((inputs, labels)), verbose=0, shuffle=False)
    plain.compile(sgd(0.5), LabelSmoothedCrossEntropy(0.1))
    plain.fit(datasets((inputs, labels)), verbose=0, shuffle=False)
    for ours, theirs in zip(wrapped.weights, plain.weights, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-6)


@pytest.mark.slow
def test_an_output_bias_is_trained_and_evaluated(small_model, tie="none"):
    """The update and the metrics are those of the model's own logits."""
    model = small_model(tie=tie, output_bias=True)
    inputs, labels = batch(LENGTHS)
    learner = make_learner(model, keras.optimizers.SGD(0.1))
    figures = learner.evaluate(datasets((inputs, labels)), verbose=0, return_dict=True)
    with tf.GradientTape() as tape:
        loss = LabelSmoothedCrossEntropy(0.1)(labels, model(inputs))
    gradient, before = tape.gradient(loss, model.output_bias), model.output_bias.numpy()
    np.testing.assert_allclose(figures["loss"], loss, rtol=1e-6)
    learner.fit(datasets((inputs, labels)), verbose=0)
    assert np.abs(gradient).max() > 0.01
    np.testing.assert_allclose(model.output_bias, before - 0.1 * gradient, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_tokens_seen_are_real_target_tokens(tiny_model):
    learner = make_learner(tiny_model())
    learner.fit(datasets(batch(LENGTHS), batch(LENGTHS[:2])), verbose=0, shuffle=False)
    assert learner.seen.numpy() == (5 + 3 + 1) + (5 + 3)


@pytest.mark.slow
def test_padding_contributes_nothing_to_the_gradient(tiny_model):
    inputs, labels = batch(LENGTHS)
    wide = {name: np.pad(tokens, ((0, 1), (0, 4))) for name, tokens in inputs.items()}
    one, two = tiny_model(), tiny_model()
    sgd = keras.optimizers.SGD
    make_learner(one, sgd(0.5)).fit(datasets((inputs, labels)), verbose=0, shuffle=False)
    make_learner(two, sgd(0.5)).fit(
        datasets((wide, np.pad(labels, ((0, 1), (0, 4))))), verbose=0, shuffle=False
    )
    for ours, theirs in zip(one.weights, two.weights, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-5)


@pytest.mark.parametrize("jit_compile, positions", [(False, 5 + 3 + 1), (True, 3 * 5)])
def test_logits_of_padding_are_computed_only_if_shapes_are_static(
    tiny_model, monkeypatch, jit_compile, positions
):
    projected = []

    def spy(hidden, *others):
        projected.append(hidden.shape[0])
        return projected_cross_entropy(hidden, *others)

    monkeypatch.setattr(objectives, "projected_cross_entropy", spy)
    learner = make_learner(tiny_model(), jit_compile=jit_compile)
    inputs, labels = batch(LENGTHS)
    learner._loss_and_gradients(inputs, tf.constant(labels), tf.constant(9.0))
    assert projected == [positions]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_learns(tiny_model, policy):
    keras.config.set_dtype_policy(policy)
    learner = Learner(tiny_model(), dtype=policy)
    learner.compile(keras.optimizers.Adam(0.01), LabelSmoothedCrossEntropy(0.1))
    scaled = isinstance(learner.optimizer, keras.optimizers.LossScaleOptimizer)
    assert scaled == (policy == "mixed_float16")
    batches = datasets(*[batch(LENGTHS)] * 20)
    first = learner.evaluate(batches.take(1), verbose=0, return_dict=True)["loss"]
    learner.fit(batches, verbose=0, shuffle=False)
    last = learner.evaluate(batches.take(1), verbose=0, return_dict=True)["loss"]
    assert last < 0.5 * first
    assert all(weight.dtype == "float32" for weight in learner.trainable_weights)


@pytest.mark.slow
def test_four_batches_of_two_equal_one_of_eight(tiny_model):
    """Accumulation over batches of different widths gives the update of all sentences at once."""
    lengths = [(7, 5), (2, 3), (4, 1), (6, 6), (3, 2), (1, 7), (5, 4), (2, 2)]
    inputs, labels = batch(lengths, width=8)
    batches = []
    for first, width in zip(range(0, 8, 2), (5, 8, 7, 4), strict=True):
        rows = slice(first, first + 2)
        features = {"source": inputs["source"][rows], "target": inputs["target"][rows, :width]}
        batches.append((features, labels[rows, :width]))
        assert not labels[rows, width:].any()
    whole, cut = tiny_model(), tiny_model()
    histories = []
    for model, data in ((whole, (inputs, labels)), (cut, tuple(batches))):
        learner = Learner(model, accumulate=1 if model is whole else 4)
        learner.compile(keras.optimizers.SGD(0.5), LabelSmoothedCrossEntropy(0.1))
        histories.append(learner.fit(datasets(data, data), verbose=0, shuffle=False).history)
    for ours, theirs in zip(cut.weights, whole.weights, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-5)
    assert histories[1]["tokens"] == histories[0]["tokens"] == [2 * 30]
    np.testing.assert_allclose(histories[1]["loss"], histories[0]["loss"], rtol=1e-5)


@pytest.mark.long
@pytest.mark.slow
def test_an_evaluation_between_updates_does_not_affect_the_training_loss(tiny_model):
    """`fit` logs the mean since the epoch began, whatever was evaluated meanwhile."""
    losses = []
    other = datasets(batch([(5, 7)], seed=9))
    for evaluates in (False, True):
        learner = make_learner(tiny_model(), keras.optimizers.SGD(0.5))
        look = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda number, logs, learner=learner: learner.evaluate(
                other, verbose=0
            )
        )
        batches = datasets(batch(LENGTHS), batch(LENGTHS[:2]), batch(LENGTHS[1:]))
        history = learner.fit(
            batches, verbose=0, shuffle=False, callbacks=[look] if evaluates else []
        ).history
        losses.append(history["loss"])
    assert losses[0] == losses[1]


def test_a_loss_that_returns_no_value_per_label_is_refused(tiny_model):
    def total(labels, logits):
        return tf.reduce_mean(logits)

    inputs, labels = batch(LENGTHS)
    learner = Learner(tiny_model())
    learner.compile("sgd", total)
    message = "`loss` must return a loss for each label, of rank 2. Received: total, .* rank 0"
    for step in (learner.train_step, learner.test_step):
        with pytest.raises(ValueError, match=message):
            step((inputs, tf.constant(labels)))


@pytest.mark.parametrize(
    ("consistency", "message"),
    [
        (RDrop(5.0), r"must be None except with the package's own .* Received: .*RDrop\(weight=5"),
        (SimCut(3.0), r"must not cut off tokens except with .* Received: .*SimCut\(weight=3"),
    ],
)
def test_another_loss_with_two_passes_is_refused(tiny_model, consistency, message):
    learner = Learner(tiny_model(), consistency=consistency)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    with pytest.raises(ValueError, match=message):
        learner.compile("sgd", loss)
    with pytest.raises(ValueError, match=message):  # nor a loss that needs all logits
        learner.compile("sgd", LabelSmoothedCrossEntropy(0.1), ["sparse_categorical_accuracy"])
    learner.compile("sgd", LabelSmoothedCrossEntropy(0.1))


@pytest.mark.long
@pytest.mark.slow
def test_a_jitted_update_equals_an_uncompiled_one(tiny_model):
    inputs, labels = batch(LENGTHS)
    one, two = tiny_model(), tiny_model()
    for model, jit_compile in ((one, False), (two, True)):
        learner = make_learner(model, keras.optimizers.SGD(0.5), jit_compile=jit_compile)
        learner.fit(datasets((inputs, labels)), verbose=0, shuffle=False)
    for ours, theirs in zip(one.weights, two.weights, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-5)


TWO_REPLICAS = """
# The first two sentences go to one replica, the others to the other: 12 tokens against 4.
batches = datasets(*[batch([(7, 5), (2, 7), (4, 1), (3, 3)], seed) for seed in range(3)])

def train(strategy):
    with strategy.scope():
        config = small_config(num_layers=1, num_decoder_layers=1)
        model = randomise(Transformer(config))
        learner = make_learner(model, keras.optimizers.SGD(0.1))
        figures = learner.fit(batches, verbose=0, shuffle=False).history
        figures.update(learner.evaluate(batches, verbose=0, return_dict=True))
    figures["tokens_seen"] = int(learner.seen.value.numpy())
    return figures, [weight.value.numpy().ravel().tolist() for weight in model.weights]

one = train(tf.distribute.get_strategy())
print(json.dumps([one, train(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))]))
"""


@pytest.mark.long
@pytest.mark.slow
def test_two_replicas_of_unequal_length_equal_one_device():
    one, two = on_two_devices(TWO_REPLICAS)
    assert one[0]["tokens_seen"] == two[0]["tokens_seen"] == 3 * 16
    for name in ("perplexity", "token_accuracy"):
        np.testing.assert_allclose(two[0][name], one[0][name], rtol=1e-5)
    for ours, theirs in zip(two[1], one[1], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
