"""Checks of `benchmarks/` that must pass before its results can be trusted. No timing tests."""

import functools
import json
import runpy
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import BENCHMARKS, run_benchmark

benchmark = functools.partial(run_benchmark, "training.py")


@pytest.mark.slow
@pytest.mark.long
def test_our_model_is_measured(tmp_path):
    output = tmp_path / "figures.json"
    done = benchmark(
        "--size=smoke", "--peers=ours", "--precisions=float32", "--repeats=2", "--steps=2",
        "--json", output,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(output.read_text())
    assert set(report) == {
        "machine", "settings", "skipped", "training", "ratios", "limits", "input",
    }  # fmt: skip
    assert report["skipped"] == report["ratios"] == []
    (row,) = report["training"]
    assert set(row) == {
        "size", "precision", "peer", "parameters", "tokens_per_second", "share_of_limit",
        "peak_bytes", "bytes_per_token", "losses",
    }  # fmt: skip
    assert (row["size"], row["precision"], row["peer"]) == ("smoke", "float32", "ours")
    assert set(row["tokens_per_second"]) == {"median", "lower", "upper", "all"}
    assert len(row["tokens_per_second"]["all"]) == 2
    assert len(row["losses"]) == 4 + 2 and row["losses"][-1] < row["losses"][0]
    (limit,) = report["limits"]
    assert "ours" in done.stdout


@pytest.mark.slow
def test_the_input_pipeline_is_measured():
    from input_pipeline import make

    pipeline = make({"corpus": "smoke", "batch_tokens": 256})
    places = pipeline.run(2)["places"]
    # The number of positions in an epoch does not depend on the order.
    assert places == 2 * pipeline.run(1)["places"]
    facts = pipeline.facts
    assert set(facts) == {"corpus", "pairs", "target_tokens", "padding", "tokenize_seconds"}
    assert 0 < facts["padding"] < 1 and facts["target_tokens"] < places / 2


def test_multi30k_is_measured_if_it_is_available(tmp_path, monkeypatch):
    from input_pipeline import choose, settings

    monkeypatch.setenv("KERAS_TRANSFORMER_DATA", str(tmp_path))
    assert choose("auto") == "cldr" and choose("smoke") == "smoke"
    with pytest.raises(FileNotFoundError, match=r"multi30k is missing: KERAS_TRANSFORMER_DATA "):
        settings("multi30k", tmp_path)
    (tmp_path / "multi30k").mkdir()
    assert choose("auto") == "multi30k"
    data, vocabulary_size = settings("multi30k", tmp_path)
    assert data.train_source == [str(tmp_path / "multi30k" / "train.en")] and vocabulary_size > 0


@pytest.mark.slow
def test_operations_are_those_of_the_graph():
    """The formula equals TensorFlow's count of the matrix products in a graph of the same shape."""
    from task import Task

    from keras_transformer import Transformer, TransformerConfig

    task = Task("other", 29, d_model=24, num_layers=2, num_heads=3, d_ff=17, rows=5, length=7)
    config = TransformerConfig(
        vocab_size=29, d_model=24, num_layers=2, num_heads=3, d_ff=17, max_length=7, dropout=0.0
    )
    model = Transformer(config)
    tokens = np.full((5, 7), 4, "int32")

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model({"source": tokens, "target": tokens}, training=True))
        return tape.gradient(loss, model.trainable_weights)

    operations = step.get_concrete_function().graph.get_operations()
    counted = sum(2 * multiplications(operation) for operation in operations)
    assert task.training_flops() == counted / task.places


def multiplications(operation):
    """Counts a matrix product's multiplications: output size x length of the summed axis."""
    if operation.type not in ("MatMul", "BatchMatMulV2"):
        return 0
    if 1 in operation.outputs[0].shape[-2:]:  # sums and means of layer normalisation
        return 0
    flag = "transpose_a" if operation.type == "MatMul" else "adj_x"
    left = operation.inputs[0].shape
    summed = left[-2] if operation.get_attr(flag) else left[-1]
    return int(np.prod(operation.outputs[0].shape)) * summed


def test_base_costs_what_the_formula_gives():
    """Computed by hand: (6 x (4 x 512^2 + ...) + ...) x 6; the logits take 27 % of it."""
    from task import SIZES

    base = SIZES["base"]
    assert base.training_flops() == 366_084_096
    assert round(6 * 512 * 32_000 / base.training_flops(), 2) == 0.27
    assert base.training_flops() - base.training_flops(0.75) == 6 * 512 * 32_000 / 4
    assert base.real_share == (base.batch()[2] != 0).sum() / base.places


def test_every_peer_gets_the_batch_it_expects():
    from task import BOS_ID, EOS_ID, SIZES

    task = SIZES["tiny"]
    source, target, labels = task.batch()
    assert source.shape == target.shape == labels.shape == (64, 32)
    assert 0 < (source == 0).mean() < 0.25 and 0 < (labels == 0).mean() < 0.25
    for row, shifted in zip(labels, target, strict=True):
        words = row[row != 0]
        assert words[-1] == EOS_ID and EOS_ID not in words[:-1]
        np.testing.assert_array_equal(shifted[: len(words)], [BOS_ID, *words[:-1]])
        assert not shifted[len(words) :].any()
    np.testing.assert_array_equal(task.batch()[0], source)


@pytest.mark.parametrize("closed_form", [False, True])
def test_the_keras_peers_minimise_our_loss(closed_form):
    from keras_training import keras_loss
    from task import Task

    from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy

    task = Task("other", 19, 8, 1, 2, 8, label_smoothing=0.2, closed_form_loss=closed_form)
    random = np.random.default_rng(0)
    logits = random.normal(size=(3, 5, 19)).astype("float32")
    labels = random.integers(0, 19, (3, 5))
    labels[1, 2:] = 0
    theirs = keras_loss(task)(keras.ops.convert_to_tensor(labels), logits)
    ours = LabelSmoothedCrossEntropy(0.2)(labels, logits)
    np.testing.assert_allclose(theirs, ours, rtol=1e-5)


def test_spread():
    from measurements import spread

    assert spread([3.0]) == {"median": 3.0, "lower": 3.0, "upper": 3.0, "all": [3.0]}
    figures = spread([5.0, 1.0, 2.0, 4.0, 3.0])
    assert (figures["lower"], figures["median"], figures["upper"]) == (2.0, 3.0, 4.0)


def test_the_fastest_peer_is_compared_repeat_by_repeat():
    from measurements import ratio_to_fastest

    speeds = {"ours": [4.0, 9.0, 8.0], "slow": [1.0, 1.0, 9.0], "fast": [2.0, 3.0, 4.0]}
    figures = ratio_to_fastest(speeds)
    assert figures["fastest_peer"] == "fast" and figures["ratio"]["all"] == [2.0, 3.0, 2.0]
    assert ratio_to_fastest({"ours": [1.0]}) is None
    assert ratio_to_fastest({"slow": [1.0], "fast": [2.0]}) is None


def test_a_different_model_is_no_peer():
    from measurements import BenchmarkError, check_parameters

    check_parameters({"ours": 1000, "theirs": 1009})
    with pytest.raises(BenchmarkError, match=r"theirs has 1,011 parameters and ours 1,000: .*1%"):
        check_parameters({"ours": 1000, "theirs": 1011})


@pytest.mark.parametrize("losses", [[3.0, 2.0, 3.0], [2.0, float("nan")]])
def test_a_peer_that_does_not_learn_is_not_measured(losses):
    from measurements import BenchmarkError, check_learning

    check_learning("theirs", [3.0, 3.1, 2.9])
    with pytest.raises(BenchmarkError, match=r"theirs does not learn: .* goes \d\.000, "):
        check_learning("theirs", losses)


def test_a_peer_without_dropout_is_not_measured():
    from measurements import BenchmarkError, check_dropout

    same, other = [7.0, 7.000001, 7.0], [7.0, 7.01, 6.98]
    check_dropout("theirs", 0.0, same)
    check_dropout("theirs", 0.1, other)
    with pytest.raises(BenchmarkError, match=r"theirs trains without dropout: at a rate of 0\.1 "):
        check_dropout("theirs", 0.1, same)
    with pytest.raises(BenchmarkError, match=r"theirs is random without dropout: .* 7\.010000, "):
        check_dropout("theirs", 0.0, other)


PEER_PACKAGES = {"tutorial": "keras", "kerashub": "keras_hub", "torch": "torch"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "peer", [pytest.param(peer, marks=pytest.mark.long) for peer in PEER_PACKAGES]
)
def test_every_peer_learns_and_drops_out(peer):
    """Keras and torch do not share a process well, so each peer has its own.

    The benchmark does the same. Our own model is tested by the benchmark that
    `test_our_model_is_measured` runs.
    """
    from measurements import check_learning
    from task import SIZES
    from workers import Worker, task_order

    pytest.importorskip(PEER_PACKAGES[peer])
    script = runpy.run_path(str(BENCHMARKS / "training.py"))
    script["prove_dropout"](peer, 0.1, "float32", 1)
    module, order = script["PEERS"][peer].module, task_order(SIZES["smoke"], "float32", 1)
    with Worker(peer, module, order, 1) as worker:
        check_learning(peer, [worker.run(1)["loss"] for _ in range(4)])


def test_a_missing_peer_is_reported_with_its_install_command(tmp_path):
    """The import path lacks torch, whether or not it is installed on this machine."""
    code = (
        "import importlib.util, runpy, sys\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'torch' else real(name, *a)\n"
        f"sys.path.insert(0, {str(BENCHMARKS)!r})\n"
        f"script = runpy.run_path({str(BENCHMARKS / 'training.py')!r}, run_name='script')\n"
        "print(script['look_for'](['ours', 'torch'], script['PEERS']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    line = "torch is skipped: torch is missing, `pip install torch` installs it."
    assert done.stdout.splitlines() == [line, f"(['ours'], [{line!r}])"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--peers=ours,theirs"], "'theirs' is not one of ours, kerashub, tutorial, torch."),
        (["--precisions=int8"], "'int8' is not one of float32, mixed_bfloat16."),
        (["--cores=4096"], "`--cores` must be at most "),
    ],
)
def test_wrong_options_are_reported_in_one_line(arguments, message):
    done = benchmark(*arguments)
    assert done.returncode and message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_worker_that_fails_reports_the_reason():
    from measurements import BenchmarkError
    from workers import Worker

    with pytest.raises(BenchmarkError, match=r"^theirs ended: ModuleNotFoundError: .*'no_such'"):
        Worker("theirs", "no_such", {}, cores=1)
