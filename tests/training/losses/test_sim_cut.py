"""SimCut adds the divergence of a pass from one without the embeddings of some tokens."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from batches import LENGTHS, batch
from marks import slow
from small_runs import At, assert_same_end, run_quietly

from keras_transformer.tasks.run import Run
from keras_transformer.training.averaging import average_checkpoints
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.losses import projected as projection
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.losses.projected import projected_cross_entropy
from keras_transformer.training.losses.sim_cut import SimCut, TokenCutoff, divergence
from keras_transformer.training.settings.toml import load_settings

N, D, V = 11, 5, 13  # N is the number of positions in each of two passes


def log_softmax(z):
    """Logarithms of the probabilities of a row of logits."""
    z = z - z.max()
    return z - np.log(np.exp(z).sum())


def test_the_divergence_and_its_gradients_are_those_of_its_definition():
    logits = np.random.default_rng(0).normal(scale=3, size=(2 * N, V))
    log_p = np.array([log_softmax(row) for row in logits])
    outputs = divergence(tf.constant(np.exp(log_p)), tf.constant(log_p))
    expected = [
        sum(np.exp(log_p[n, v]) * (log_p[n, v] - log_p[N + n, v]) for v in range(V))
        for n in range(N)
    ]
    np.testing.assert_allclose(outputs[0], expected, rtol=1e-12)
    z = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(z)
        one, two = tf.split(tf.nn.log_softmax(z), 2)
        total = tf.reduce_sum(tf.exp(one) * (one - two))
    np.testing.assert_allclose(tf.concat(outputs[1:], 0), tape.gradient(total, z), atol=1e-12)


def example():
    random = np.random.default_rng(0)
    weights = random.uniform(0, 1, N) * (random.uniform(0, 1, N) > 0.3)
    labels = random.integers(0, V, N)
    hidden, table = random.normal(size=(2 * N, D)), random.normal(size=(V, D))
    return hidden, table, labels, weights


@pytest.mark.parametrize("rows", [4, slow(1), slow(11), slow(100)])
def test_the_loss_is_the_cross_entropy_of_the_first_pass_plus_the_divergence(monkeypatch, rows):
    """For any number of rows in a chunk; gradients by automatic differentiation in float64."""
    monkeypatch.setattr(projection, "CHUNK_BYTES", rows * 2 * 4 * V)
    hidden, table, labels, weights = example()
    smoothing, weight = 0.1, 3.0
    tensors = tf.constant(hidden), tf.constant(table)
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        log_p = tf.nn.log_softmax(tf.einsum("nd,vd->nv", *tensors))
        expected = 0.0
        for n in range(N):
            one, two = log_p[n], log_p[N + n]
            right = (1 - smoothing) * one[labels[n]] + smoothing * tf.reduce_mean(one)
            apart = tf.reduce_sum(tf.exp(one) * (one - two))
            expected += weights[n] * (weight * apart - right)
    wanted = tape.gradient(expected, tensors)

    @tf.function
    def loss_and_gradients(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            both = np.tile(labels, 2), np.tile(weights, 2).astype("float32")
            loss = projected_cross_entropy(*tensors, *both, smoothing, SimCut(weight))
        return loss, tape.gradient(loss, tensors)

    loss, gradients = loss_and_gradients(*(tf.cast(tensor, "float32") for tensor in tensors))
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    for ours, theirs in zip(gradients, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
        assert np.abs(theirs).max() > 0.1


def test_the_second_pass_is_cut_at_random_places_of_the_given_share():
    tokens = np.random.default_rng(0).integers(1, 50, (400, 30))
    cutoff = TokenCutoff(0.05, special_ids=(2, 3), seed=1)
    kept, again = cutoff(tokens).numpy(), cutoff(tokens).numpy()
    assert kept[:200].all(), "the first pass reads everything"
    special = np.isin(tokens, (2, 3))
    assert kept[special].all()
    share = 1 - kept[200:][~special[200:]].mean()
    assert share == pytest.approx(0.05, abs=4 * (0.05 * 0.95 / 5700) ** 0.5)  # 4 deviations
    assert (kept != again).any(), "every call cuts other tokens"
    assert np.ptp(kept[200:].sum(axis=0)) > 0 and np.ptp(kept[200:].sum(axis=1)) > 0


def test_a_rate_out_of_range_is_refused():
    with pytest.raises(ValueError, match=r"`rate` must be at least 0 and below 1\. .* rate=1"):
        TokenCutoff(1.0)


def learner_of(model, rate, consistency=True):
    learner = Learner(model, consistency=SimCut(3.0, rate, (2, 3)) if consistency else None)
    learner.compile(keras.optimizers.SGD(0.5), LabelSmoothedCrossEntropy(0.1))
    return learner


def test_the_loss_of_a_batch_compares_it_with_the_same_batch_after_the_cutoff(small_model):
    """Without dropout; the embeddings of cut tokens are zeros on both sides."""
    model = small_model(num_layers=1, num_decoder_layers=1)
    learner = learner_of(model, 0.4)
    same = TokenCutoff(0.4, (2, 3))
    same.seed_generator.state.assign(learner.cutoff.seed_generator.state)
    inputs, labels = batch(LENGTHS)
    masks = {}
    for side in ("target", "source"):  # in the order of the model
        masks[side] = same(np.tile(inputs[side], (2, 1)))[len(labels) :]
        assert not tf.reduce_all(masks[side] | (inputs[side] == 0))

    def cut(tokens):
        return masks["source" if tokens.shape == inputs["source"].shape else "target"]

    assert inputs["source"].shape != inputs["target"].shape
    log_p = []
    for cutoff in (None, cut):
        hidden = model.hidden_states(inputs, cutoff=cutoff)
        log_p.append(tf.nn.log_softmax(tf.matmul(hidden, model.output_matrix, transpose_b=True)))
    one, two = (values.numpy()[labels != 0].astype("float64") for values in log_p)
    real = labels[labels != 0]
    right = 0.9 * one[np.arange(len(real)), real] + 0.1 * one.mean(axis=1)
    expected = np.mean(3 * np.sum(np.exp(one) * (one - two), axis=1) - right)
    logs = learner.train_step((inputs, tf.constant(labels)))
    np.testing.assert_allclose(logs["loss"], expected, rtol=1e-5)
    assert logs["tokens"] == len(real), "labels are counted once"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_without_dropout_and_cutoff_an_update_is_the_same(small_model, jit_compile):
    """Two equal passes: the divergence and its gradient are zero, and the cross-entropy is one."""
    with_it, without = (small_model(num_layers=1, num_decoder_layers=1) for _ in range(2))
    data = tf.data.Dataset.from_tensors(batch(LENGTHS))  # of known shape, as XLA needs it
    figures = []
    for model, consistency in ((with_it, True), (without, False)):
        learner = learner_of(model, 0.0, consistency)
        learner.jit_compile = jit_compile
        figures.append(learner.fit(data, verbose=0, shuffle=False).history)
    np.testing.assert_allclose(figures[0]["loss"], figures[1]["loss"], rtol=1e-5)
    assert figures[0]["tokens"] == figures[1]["tokens"]
    for ours, theirs in zip(with_it.weights, without.weights, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-5)


def test_a_learner_without_it_has_the_same_variables_as_before(small_model):
    """So that earlier checkpoints still fit; with it, the weights of the model come first."""
    model = small_model(num_layers=1, num_decoder_layers=1)
    plain, cutting = learner_of(model, 0.1, False), learner_of(model, 0.1)
    names = [[variable.path for variable in learner.variables] for learner in (plain, cutting)]
    assert names[1][:-1] == names[0]
    assert "token_cutoff" in names[1][-1]


@pytest.mark.long
@pytest.mark.slow
def test_a_run_resumes_exactly_and_is_averaged(six_updates, tmp_path):
    """The random numbers of the cutoff continue, and an average takes the weights of the model."""
    overrides = ["training.updates=6", "training.simcut=3.0", "training.token_cutoff=0.3"]
    settings = load_settings(six_updates.corpus / "config.toml", overrides)
    figures, _ = run_quietly(settings, tmp_path / "whole")

    def interrupt():
        raise KeyboardInterrupt

    assert run_quietly(settings, tmp_path / "again", [At(2, interrupt)])[0] is None
    run_quietly(settings, tmp_path / "again")
    assert_same_end(tmp_path / "again", (tmp_path / "whole", figures))
    average = average_checkpoints(tmp_path / "whole", 1, tmp_path / "average")
    ours, theirs = (Run(folder).load_model() for folder in (average, tmp_path / "whole"))
    for weight, other in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_array_equal(weight.numpy(), other.numpy(), err_msg=weight.path)
