"""Checks of `benchmarks/` that must pass before its results can be trusted. No timing tests."""

import functools
import json
import runpy

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
    metadata = pipeline.metadata
    assert set(metadata) == {"corpus", "pairs", "target_tokens", "padding", "tokenize_seconds"}
    assert 0 < metadata["padding"] < 1 and metadata["target_tokens"] < places / 2


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
