"""Replicas trained on arrays end with the weights of a single device."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from array_corpora import KINDS, write_corpus
from small_runs import run_quietly

from keras_transformer.tasks import TASKS
from keras_transformer.tasks.run import Run
from keras_transformer.training.data.shards import cut
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.tasks import training_class

# No dropout: replicas would draw different masks. The last batch of an epoch has one row.
OVERRIDES = ["model.dropout=0.0", "data.batch_size=4", "training.final_model=last"]
SCRIPT = """
import io, json, sys
import rich.console, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from keras_transformer.training.devices.strategy import make_strategy
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.training_run import train

config, output, overrides = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
strategy = make_strategy("mirrored")
assert strategy.num_replicas_in_sync == 2
console = rich.console.Console(file=io.StringIO())
train(load_settings(config, overrides), output, strategy=strategy, console=console)
"""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [k if k == "time_series" else pytest.param(k, marks=pytest.mark.long) for k in KINDS]
)
def test_two_replicas_equal_one_device(tmp_path, kind):
    config = write_corpus(tmp_path / "corpus") / f"{kind}.toml"
    overrides = OVERRIDES if kind == "image_classification" else OVERRIDES[:2]
    command = [sys.executable, "-c", SCRIPT, str(config), str(tmp_path / "two")]
    done = subprocess.run([*command, json.dumps(overrides)], capture_output=True, text=True)
    if kind == "image_embedding":  # which compares all images of a batch
        assert "every image is compared with all others of its batch" in done.stderr
        return
    assert done.returncode == 0, done.stderr[-3000:]
    figures, _ = run_quietly(load_settings(config, overrides), tmp_path / "one")
    ours, theirs = Run(tmp_path / "two"), Run(tmp_path / "one")
    for two, alone in zip(ours.load_model().weights, theirs.load_model().weights, strict=True):
        np.testing.assert_allclose(two.numpy(), alone.numpy(), atol=1e-5, err_msg=two.path)
    metrics = ours.read_metrics()
    assert metrics["validation"] == pytest.approx(figures["validation"], rel=1e-4)
    seen = next(name for name in figures if name.endswith("_seen"))
    assert metrics[seen] == figures[seen]


@pytest.mark.parametrize("kind", KINDS)
def test_padding_rows_have_no_weight(kind):
    """Five examples on three replicas: one row of padding."""
    training = training_class(TASKS[kind])()
    labels = np.array([2, 0, 1, 0, 2], "int32")
    if kind == "time_series":
        labels = np.ones((5, 7, 2), "float32")
    inputs = np.random.default_rng(0).normal(size=(5, 7, 3)).astype("float32")
    shards = [cut(tf.constant(part), 3, training.pad_id) for part in (inputs, labels)]
    weights = [np.asarray(training.weigh(*pair)) for pair in zip(*shards, strict=True)]
    np.testing.assert_array_equal(weights[0], np.ones_like(weights[0]))
    assert sum(weight.sum() for weight in weights) == np.sum(training.weigh(inputs, labels))
    assert (weights[2][1] == 0).all() and np.isfinite(shards[0].numpy()).all()
