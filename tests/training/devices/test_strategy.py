"""Replicas and processes that train together end with the weights of a single device."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from corpora import corpus_of_numbers
from small_runs import CONFIG, run_quietly, tf_config

from keras_transformer.cli.main import cli
from keras_transformer.tasks.run import Run
from keras_transformer.training.data.shards import cut
from keras_transformer.training.loop.checkpoint import Checkpoints
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import load_settings

UPDATES = 10
# The gradient is clipped at every update. No dropout: replicas would draw different masks.
OVERRIDES = [
    "model.dropout=0.0",
    "model.attention_dropout=0.0",
    "optimizer.clip_norm=0.1",
    "training.validate_sentences=3",
    f"training.updates={UPDATES}",
]

# Trains in this process. argv: configuration, run, strategy, overrides, then the number of an
# update and the signal that this process sends itself then, or 0 and 0.
PROCESS = """
import json, os, sys
import keras, rich.console, tensorflow as tf
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.devices.strategy import make_strategy
from keras_transformer.training.training_run import train

config, run, name, overrides, update, number = sys.argv[1:]
if name == "mirrored":
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

class Signal(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == int(update):
            os.kill(os.getpid(), int(number))

settings = load_settings(config, json.loads(overrides))
console = rich.console.Console(file=sys.stderr, width=40)
try:
    figures = train(
        settings, run, strategy=make_strategy(name), console=console, callbacks=[Signal()]
    )
    print(json.dumps(figures))
except (ValueError, OSError, KeyboardInterrupt) as error:
    print(f"{type(error).__name__}: {error}", flush=True)
    if isinstance(error, ConnectionError):
        os._exit(1)
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """A configuration whose last batch has one row, and whose other batches have odd numbers."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(1)
    for split, count in (("train", 29), ("validation", 7)):
        rows = [rng.integers(0, 10, rng.integers(1, 6)) for _ in range(count)]
        if split == "train":
            rows.append(rng.integers(0, 10, 12))  # alone in the widest batch
        for side, order in (("src", 1), ("tgt", -1)):
            lines = ["".join(map(str, row[::order])) for row in rows]
            (folder / f"{split}.{side}").write_text("\n".join(lines) + "\n")
    (folder / "config.toml").write_text(CONFIG.replace("batch_tokens = 60", "batch_tokens = 21"))
    return folder / "config.toml"


@pytest.fixture(scope="module")
def one_device(config, tmp_path_factory):
    """The uninterrupted run of a single device, and the result of `train`."""
    folder = tmp_path_factory.mktemp("one_device")
    return folder, run_quietly(load_settings(config, OVERRIDES), folder)[0]


def begin(config, run, strategy, overrides=(), at=(0, 0), **environment):
    overrides = [*OVERRIDES, *overrides]
    if at is None:  # with the command line
        command = [sys.executable, "-m", "keras_transformer", "train", str(config)]
        command += ["--output", str(run), "--strategy", strategy]
        command += [word for override in overrides for word in ("--set", override)]
    else:
        command = [sys.executable, "-c", PROCESS, str(config), str(run), strategy]
        command += [json.dumps(overrides), *(str(int(number)) for number in at)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def begin_two_workers(config, run, overrides=((), ()), at=((0, 0), (0, 0))):
    """Starts two processes of one cluster, on free ports."""
    sockets = [socket.socket() for _ in range(2)]
    for sock in sockets:
        sock.bind(("localhost", 0))
    addresses = [f"localhost:{sock.getsockname()[1]}" for sock in sockets]
    for sock in sockets:
        sock.close()
    processes = []
    for index in range(2):
        task = {"type": "worker", "index": index}
        cluster = json.dumps({"cluster": {"worker": addresses}, "task": task})
        processes.append(
            begin(config, run, "multi_worker", overrides[index], at[index], TF_CONFIG=cluster)
        )
    return processes


def ends(*processes):
    """Returns the last line and the messages of each process; no process may hang."""
    try:
        results = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [((out.splitlines() or [""])[-1], err) for out, err in results]


def assert_same_weights(run, one_device):
    """Checks model, optimizer and tokens seen against a single device, up to rounding."""
    folder, figures = one_device
    ours, theirs = Run(run), Run(folder)
    for one, two in zip(ours.load_model().weights, theirs.load_model().weights, strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy(), atol=1e-5, err_msg=one.path)
    last = [Checkpoints(trained.checkpoints).paths()[-1] for trained in (ours, theirs)]
    assert last[0].name == last[1].name
    first, second = (np.load(path) for path in last)
    for one, two in zip(first.files[:-1], second.files[:-1], strict=True):
        np.testing.assert_allclose(first[one], second[two], atol=1e-5, err_msg=one)
    metrics = json.loads(ours.metrics.read_text())
    assert metrics["tokens_seen"] == figures["tokens_seen"]
    assert metrics["validation"].keys() == figures["validation"].keys()
    for name, value in figures["validation"].items():
        np.testing.assert_allclose(metrics["validation"][name], value, rtol=1e-4, err_msg=name)


def losses(run):
    """Returns the curve of the training loss as TensorBoard shows it."""
    curve = {}
    for file in sorted(run.logs.glob("events*")):
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                if value.tag == "train/loss":
                    curve[event.step] = tf.make_ndarray(value.tensor).item()
    return curve


def test_the_batches_of_this_file_are_uneven(config):
    """One replica of two gets no row of the last batch, and one row more of others."""
    settings = load_settings(config, OVERRIDES)
    run = open_source(settings.data).rows("train")
    lengths = [len(source.numpy().decode()) + 2 for source, _ in run]
    corpus = corpus_of_numbers([[5] * length for length in lengths])
    rows = [len(labels) for _, labels in corpus.batches(settings.data.batch_tokens)]
    assert len(rows) <= UPDATES, "an epoch is seen whole"
    assert 1 in rows and any(count % 2 and count > 1 for count in rows)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 9])
def test_a_share_of_a_batch_is_every_nth_row_padded(rows):
    batch = np.arange(1, rows * 5 + 1, dtype="int32").reshape(rows, 5)
    pieces = cut(tf.constant(batch), 3, 77).numpy()
    size = max(len(batch[i::3]) for i in range(3))
    assert pieces.shape == (3, size, 5)
    for i in range(3):
        own = batch[i::3]
        np.testing.assert_array_equal(pieces[i, : len(own)], own)
        assert (pieces[i, len(own) :] == 77).all()


TWO_REPLICAS = """
import json
import keras, numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from keras_transformer.training.devices.keras_patches import sum_gradients_first
from keras_transformer.training.data.shards import cut_batches
from keras_transformer.training.devices.strategy import make_strategy

strategy = make_strategy("mirrored")
with strategy.scope():
    weight = keras.Variable(np.zeros(2, "float32"), name="weight")
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1.0), initial_scale=8.0)
    optimizer.build([weight])
    sum_gradients_first(optimizer)
    sum_gradients_first(optimizer)  # as a second `compile` does

@tf.function
def update(first, second):
    def step():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        optimizer.apply_gradients([(tf.where(replica == 0, first, second), weight)])
    strategy.run(step)

def after(first, second):
    update(tf.constant(first), tf.constant(second))
    scales = strategy.experimental_local_results(optimizer.dynamic_scale.value)
    weights = strategy.experimental_local_results(weight.value)
    return [value.numpy().tolist() for value in (*weights, *scales)]

steps = [after([8.0, 8.0], [np.inf, 8.0]), after([4.0, 8.0], [8.0, -16.0])]

micro = [
    ({"source": np.arange(15).reshape(5, 3)}, np.arange(20).reshape(5, 4)),
    ({"source": np.arange(6).reshape(3, 2)}, np.arange(3).reshape(3, 1)),
]
structure = tuple(micro)
spec = tf.nest.map_structure(lambda a: tf.TensorSpec([None, None], a.dtype), structure)
batches = tf.data.Dataset.from_generator(lambda: iter([structure]), output_signature=spec).repeat()
pieces = next(iter(cut_batches(batches, strategy, 99)))
pieces = [
    [part.numpy().tolist() for part in strategy.experimental_local_results(leaf)]
    for leaf in tf.nest.flatten(pieces)
]
print(json.dumps([steps, pieces]))
"""


@pytest.fixture(scope="module")
def two_replicas():
    command = [sys.executable, "-c", TWO_REPLICAS]
    process = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


@pytest.mark.slow
def test_an_overflow_on_one_replica_counts_for_all(two_replicas):
    """The update is skipped and the scale halved; the next gradient is summed and unscaled."""
    overflow, sound = two_replicas[0]
    assert overflow == [[0.0, 0.0], [0.0, 0.0], 4.0, 4.0]
    assert sound == [[-3.0, 2.0], [-3.0, 2.0], 4.0, 4.0]


@pytest.mark.slow
def test_replicas_get_their_shares_of_any_structure(two_replicas):
    """The structure is two micro-batches of different sizes; 99 is padding."""
    source, labels = np.arange(15).reshape(5, 3), np.arange(20).reshape(5, 4)
    expected = [
        [source[::2], [*source[1::2], [99] * 3]],
        [labels[::2], [*labels[1::2], [99] * 4]],
        [[[0, 1], [4, 5]], [[2, 3], [99, 99]]],
        [[[0], [2]], [[1], [99]]],
    ]
    assert len(two_replicas[1]) == len(expected)
    for ours, theirs in zip(two_replicas[1], expected, strict=True):
        for one, two in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.long
@pytest.mark.slow
def test_two_devices_equal_one(config, one_device, tmp_path):
    ((figures, shown),) = ends(begin(config, tmp_path, "mirrored"))
    assert figures.startswith("{"), shown
    assert_same_weights(tmp_path, one_device)
    expected = losses(Run(one_device[0]))
    assert sorted(expected) == [3, 6, 9, 10]
    ours = losses(Run(tmp_path))
    np.testing.assert_allclose(list(ours.values()), list(expected.values()), rtol=1e-5)


@pytest.mark.long
@pytest.mark.slow
def test_two_workers_equal_one_device(config, one_device, tmp_path):
    results = ends(*begin_two_workers(config, tmp_path))
    figures = [json.loads(out) if out.startswith("{") else pytest.fail(err) for out, err in results]
    assert figures[0] == figures[1] == json.loads(Run(tmp_path).metrics.read_text())
    assert_same_weights(tmp_path, one_device)
    expected = losses(Run(one_device[0]))
    ours = losses(Run(tmp_path))
    np.testing.assert_allclose(list(ours.values()), list(expected.values()), rtol=1e-5)
    assert f"update {UPDATES} of {UPDATES}" in results[0][1]
    assert "update" not in results[1][1], "only the chief speaks"
    assert len(list(Run(tmp_path).logs.iterdir())) == 1, "only the chief writes"


@pytest.mark.long
@pytest.mark.slow
def test_killing_the_chief_ends_the_others_and_one_device_can_resume(config, one_device, tmp_path):
    kill = (5, signal.SIGKILL)
    first, second = ends(*begin_two_workers(config, tmp_path, at=(kill, None)))
    assert first[0] == ""
    # Without a chief, TensorFlow may end the process before Python can print the reason.
    reported = "Error: another worker has ended" in second[1]
    assert reported or "coordination" in second[1].lower(), second
    _, shown = run_quietly(load_settings(config, OVERRIDES), tmp_path)
    assert "Resuming after update 4 of" in shown
    assert_same_weights(tmp_path, one_device)


@pytest.mark.long
@pytest.mark.slow
def test_a_signal_and_a_kill_lose_only_unsaved_updates(config, one_device, tmp_path):
    at = ((0, 0), (5, signal.SIGTERM))
    first, second = ends(*begin_two_workers(config, tmp_path, at=at))
    assert first[0] == "KeyboardInterrupt: ", first
    assert second[0] == f"KeyboardInterrupt: {signal.SIGTERM:d}", second  # the exit status is 143
    assert f"Stopped after update 5 of {UPDATES}; everything is saved." in first[1]
    assert Checkpoints(Run(tmp_path).checkpoints).paths()[-1].name == "update-00000005.npz"

    kill = (2, signal.SIGKILL)  # at update 7, the second update of this process
    first, second = ends(*begin_two_workers(config, tmp_path, at=(None, kill)))
    assert second[0] == ""
    message = "Error: another worker has ended or cannot be reached. Start all workers again with"
    assert first[1].splitlines()[-1].startswith(message), first
    assert "Resuming after update 5 of" in first[1]
    assert Checkpoints(Run(tmp_path).checkpoints).paths()[-1].name == "update-00000006.npz"

    first, second = ends(*begin_two_workers(config, tmp_path))
    assert f"Resuming after update 6 of {UPDATES}." in first[1]
    assert_same_weights(tmp_path, one_device)


@pytest.mark.long
@pytest.mark.slow
def test_workers_with_different_settings_are_refused(config, tmp_path):
    overrides = ([], ["training.seed=9"])
    for out, _ in ends(*begin_two_workers(config, tmp_path, overrides)):
        pattern = r"ValueError: the workers differ in their settings: \d+, \d+\. All of them need"
        assert re.match(pattern, out), out
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.slow
def test_a_failure_of_the_chief_ends_all_workers(config, tmp_path):
    overrides = (["vocabulary.size=5000"],) * 2
    first, second = ends(*begin_two_workers(config, tmp_path, overrides))
    assert first[0].startswith("UnfitSize: `vocabulary.size` must be at most"), first
    assert second[0] == (
        "ConnectionError: the chief (worker 0) has stopped; see its own error message."
    )


@pytest.mark.slow
def test_an_address_in_use_is_reported_in_one_line(config, tmp_path):
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        taken.listen()
        address = f"localhost:{taken.getsockname()[1]}"
        cluster = tf_config(workers=[address])
        ((out, shown),) = ends(begin(config, tmp_path, "multi_worker", TF_CONFIG=cluster))
    assert out.startswith("ValueError: this worker cannot join the others in TF_CONFIG"), shown


@pytest.mark.slow
@pytest.mark.long
def test_a_cluster_of_one_equals_one_device(config, one_device, tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        cluster = tf_config(workers=[f"localhost:{free.getsockname()[1]}"])
    ((out, shown),) = ends(begin(config, tmp_path, "multi_worker", at=None, TF_CONFIG=cluster))
    assert f"update {UPDATES} of {UPDATES}" in shown
    assert_same_weights(tmp_path, one_device)


def test_the_command_line_reports_mistakes(config, monkeypatch, tmp_path):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    arguments = ["train", str(config), "--output", str(tmp_path / "run"), "--strategy"]
    result = CliRunner().invoke(cli, [*arguments, "multi_worker"])
    assert result.exit_code == 1
    assert re.match(
        "Error: TF_CONFIG is not set. .* Received: TF_CONFIG=nothing.\n$", result.output
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.long
@pytest.mark.slow
def test_xla_and_several_replicas_are_refused(config, tmp_path):
    ((out, shown),) = ends(begin(config, tmp_path, "mirrored", ["training.jit_compile=true"]))
    assert re.match("ValueError: `training.jit_compile` works on one .* MirroredStrategy; set", out)
