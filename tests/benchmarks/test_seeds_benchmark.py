"""`benchmarks/seeds_jax.py` computes the same model, loss and learning rate as this package."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from small_runs import run_quietly, write_small_corpus
from support import BENCHMARKS, run_benchmark

from keras_transformer import Transformer
from keras_transformer.tasks.run import Run
from keras_transformer.training.losses.sim_cut import SimCut
from keras_transformer.training.schedule import WarmupLinearDecay
from keras_transformer.training.settings.toml import load_settings

PYTHON = os.environ.get("KERAS_TRANSFORMER_JAX", sys.executable)


THEIRS = """
import json, pathlib, sys
import numpy as np, jax, jax.numpy as jnp
import seeds_jax as ours
import seeds_model
folder = pathlib.Path(sys.argv[1])
settings, sides, first = ours.load(folder)
given = dict(np.load(folder / "given.npz"))
tree = jax.tree_util.tree_map(jnp.asarray, seeds_model.tree_of(first[1]))
back = seeds_model.arrays_of(tree, first[1])
assert all((back[path] == value).all() for path, value in first[1].items())
x = seeds_model.Model(settings, jnp.float32).states(tree, given["source"], given["target"])
loss = seeds_model.make_loss(settings["simcut"], settings["label_smoothing"])
arguments = given["x"], given["table"], given["wanted"], jnp.asarray(given["share"])
value, gradients = jax.value_and_grad(loss, (0, 1))(*arguments)
rates = [ours.learning_rate(jnp.float32(n), settings) for n in given["updates"]]
seed = jnp.uint32(3)
kept = [seeds_model.chosen(0.2, (400, 300), s) for s in (seed, seeds_model.child(seed, 1))]
np.savez(folder / "found.npz", logits=x @ tree["table"].T, value=value, by_x=gradients[0],
         by_table=gradients[1], rates=rates, kept=kept)
ours.CHUNK, ours.EVERY = 2, 1
ours.train(folder)
"""


def sim_cut(x, table, wanted, share, weight, smoothing):
    """The value and the gradients of SimCut with label smoothing, by TensorFlow."""
    with tf.GradientTape() as tape:
        tape.watch([x, table])
        log_p = tf.nn.log_softmax(tf.reshape(x @ tf.transpose(table), [2, -1, len(table)]))
        hot = tf.one_hot(wanted, len(table), 1 - smoothing, dtype=x.dtype)
        smooth = hot + smoothing / len(table)
        entropy = -tf.reduce_sum(smooth * log_p[0], -1)
        apart = tf.reduce_sum(tf.exp(log_p[0]) * (log_p[0] - log_p[1]), -1)
        value = tf.reduce_sum((entropy + weight * apart) * share)
    return value, *tape.gradient(value, [x, table])


@pytest.mark.long
@pytest.mark.slow
def test_jax_computes_what_this_package_computes(tmp_path):
    write_small_corpus(tmp_path)
    changes = [
        "model.norm=pre", "model.attention_dropout=0", "training.simcut=2.0",
        "training.updates=6", "training.checkpoint_every=100", "training.keep_checkpoints=10",
        "schedule.kind=linear", "schedule.warmup_steps=2", "schedule.peak=0.01",
        "schedule.final=0.002",
    ]  # fmt: skip
    settings = load_settings(tmp_path / "config.toml", changes)
    run, folder = tmp_path / "run", tmp_path / "seeds"
    run_quietly(settings, run)
    done = run_benchmark("seeds.py", "prepare", run, folder, "--seeds", "2")
    assert done.returncode == 0, done.stderr
    model = Run(run).load_model(Transformer)
    with np.load(folder / "first-1.npz") as first, np.load(folder / "first-2.npz") as second:
        assert (first["embedding/table"] != second["embedding/table"]).any()
        for weight in model.weights:
            weight.assign(first[weight.path])
    rng, size = np.random.default_rng(0), model.config.tokens.vocab_size
    with np.load(folder / "examples.npz") as examples:
        source = examples["source"][:5]
        target = np.pad(examples["target"][:5, :-1], [(0, 0), (1, 0)], constant_values=2)
    given = {
        "source": source, "target": target, "wanted": rng.integers(0, size, 6),
        "x": rng.normal(size=(12, 16)), "table": rng.normal(size=(size, 16)),
        "share": np.array([1, 1, 0, 1, 1, 1]) / 5, "updates": np.arange(1, 7),
    }  # fmt: skip
    given = {name: np.float32(v) if v.dtype == float else v for name, v in given.items()}
    np.savez(folder / "given.npz", **given)
    done = subprocess.run(
        [PYTHON, "-c", THEIRS, str(folder)], capture_output=True, text=True, cwd=BENCHMARKS
    )
    if "No module named 'jax'" in done.stderr:
        pytest.skip("JAX is missing: KERAS_TRANSFORMER_JAX names a Python that has it")
    assert done.returncode == 0, done.stderr[-2000:]
    found = np.load(folder / "found.npz")
    logits = model({"source": source, "target": target}).numpy()
    real = target != 0
    np.testing.assert_allclose(
        found["logits"][real], logits[real], atol=2e-5 * np.abs(logits).max()
    )
    arguments = (tf.constant(given[name]) for name in ("x", "table"))
    value, *gradients = sim_cut(*arguments, given["wanted"], given["share"], 2.0, 0.1)
    np.testing.assert_allclose(found["value"], value, rtol=1e-5)
    for name, gradient in zip(("by_x", "by_table"), gradients, strict=True):
        np.testing.assert_allclose(found[name], gradient, atol=1e-5)
    schedule = WarmupLinearDecay(0.01, 2, 6, 0.002)
    np.testing.assert_allclose(found["rates"], [schedule(n) for n in range(6)], rtol=1e-5)
    assert abs(found["kept"].mean() - 0.8) < 0.005  # 240,000 draws: 6 standard deviations
    assert abs(np.corrcoef(*found["kept"].reshape(2, -1))[0, 1]) < 0.02
    assert "update 6  loss" in done.stdout
    done = run_benchmark("seeds.py", "collect", run, folder)
    assert done.returncode == 0, done.stderr
    for number in (1, 2):
        trained = Run(folder / f"run-{number}").load_model(Transformer)
        with np.load(folder / f"mean-{number}.npz") as mean:
            for weight in trained.weights:
                np.testing.assert_array_equal(weight, mean[weight.path])


def test_simcut_is_the_same_loss():
    """The reference above agrees with the class that `train` uses."""
    rng = np.random.default_rng(1)
    x, table = (tf.constant(rng.normal(size=shape)) for shape in ((6, 4), (9, 4)))
    wanted, share = np.array([1, 8, 0]), np.full(3, 1 / 3)
    value, by_x, _ = sim_cut(x, table, wanted, share, 2.0, 0.0)
    p = tf.nn.softmax(x @ tf.transpose(table))
    hot = tf.one_hot(np.tile(wanted, 2), 9, dtype=p.dtype)
    entropy = -tf.math.log(tf.reduce_sum(hot * p, -1))
    loss, by_z = SimCut(2.0).added(entropy, p - hot, p, tf.math.log(p))
    np.testing.assert_allclose(tf.reduce_sum(loss) / 3, value)
    np.testing.assert_allclose(by_z @ table / 3, by_x, atol=1e-12)
