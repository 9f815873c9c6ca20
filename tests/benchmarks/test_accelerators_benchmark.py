"""Checks of `benchmarks/accelerators.py`: counts of operations, and one program for a TPU."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from support import BENCHMARKS

PYTHON = os.environ.get("KERAS_TRANSFORMER_JAX", sys.executable)


def run(*arguments):
    """Runs the command in this process; returns its result."""
    import accelerators

    return CliRunner().invoke(accelerators.main, [*map(str, arguments)])


def counts_of(function, *arguments):
    from accelerator_counts import Counts

    program = tf.function(function, jit_compile=True, autograph=False)
    return Counts(program.experimental_get_compiler_ir(*arguments)(stage="hlo_serialized"))


def test_products_in_loops_count_for_every_step():
    x, kernel = tf.ones([3, 5, 7]), tf.ones([7, 7])
    image, filters = tf.ones([2, 11, 13]), tf.ones([3, 13, 17])

    def body(number, x):
        return number + 1, x @ kernel

    def function(x, image):
        _, x = tf.while_loop(lambda number, _: number < 19, body, (2, x))
        return x, tf.nn.conv1d(image, filters, 1, "SAME")

    counts = counts_of(function, x, image)
    assert counts.flops == 17 * 2 * 3 * 5 * 7 * 7 + 2 * 2 * 11 * 3 * 13 * 17
    assert counts.steps == [] and counts.updated == 0


def test_a_step_counts_where_the_end_is_not_known():
    kernel = tf.ones([7, 7])

    def function(x):
        x = x @ kernel
        return tf.while_loop(lambda x: tf.reduce_sum(x) < 1e6, lambda x: [x @ kernel @ kernel], [x])

    counts = counts_of(function, tf.ones([5, 7]))
    assert (counts.flops, counts.steps) == (2 * 5 * 7 * 7, [2 * 2 * 5 * 7 * 7])


def test_overwritten_variables_are_counted():
    total, kept = tf.Variable(np.ones([3], "float32")), tf.Variable(np.ones([3], "float32"))
    assert counts_of(lambda x: total.assign_add(x * kept), tf.ones([3])).updated == 1


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The program of a small batch's update, and what `extract` prints."""
    path = tmp_path_factory.mktemp("accelerators") / "tiny.hlo"
    line = [sys.executable, BENCHMARKS / "accelerators.py", "extract", "tiny", "update", path]
    done = subprocess.run([*line, "--rows", "2"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path, json.loads(done.stdout)


@pytest.mark.slow
def test_an_update_has_the_operations_of_the_formula(tiny):
    from task import Task

    formula = Task("tiny", 4_000, 128, 4, 4, 256, length=32).training_flops()
    # More: some sums are products with ones.
    assert formula <= tiny[1]["flops_per_token"] < 1.01 * formula
    # Each weight with both moments of Adam, the numbers of updates and labels, the mean loss.
    assert tiny[1]["updated"] > 300


@pytest.mark.slow
def test_replicas_sum_every_gradient():
    from accelerator_programs import MODELS, Batch, extract
    from tensorflow.compiler.xla.service import hlo_pb2

    program = extract("tiny", "update", Batch(2, 32, replicas=4), "mixed_bfloat16")
    module = hlo_pb2.HloModuleProto.FromString(program)
    sums = [
        tuple(item.shape.dimensions)
        for computation in module.computations
        for item in computation.instructions
        if item.opcode == "all-reduce"
    ]
    weights = [tuple(weight.shape) for weight in MODELS["tiny"]("float32").trainable_weights]
    # Also the number of labels, for the mean over all replicas, and the loss.
    assert sorted(sums) == sorted([*weights, (), ()])


@pytest.mark.long
@pytest.mark.slow
def test_an_update_compiles_for_a_tpu(request):
    from measurements import BenchmarkError
    from peers_python import versions_in

    try:
        versions_in(PYTHON, ["jax", "libtpu"], "")
    except BenchmarkError:
        pytest.skip("needs jax[tpu] in the Python that KERAS_TRANSFORMER_JAX names")
    path, extracted = request.getfixturevalue("tiny")
    done = run("compile", path, "--chip", "v5e", "--jax-python", PYTHON)
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert report.items() >= extracted.items() and report["device"] == "TPU v5 lite"
    assert report["donated"] == extracted["updated"] and report["all_reduces"] == 0
    assert 0.99 * report["argument_bytes"] < report["aliased_bytes"] < report["argument_bytes"]


def test_missing_packages_are_named(tmp_path):
    program = tmp_path / "some.hlo"
    program.touch()
    done = run("compile", program)
    assert done.exit_code == 1 and f"{program}.json is missing: write" in done.output
    (tmp_path / "some.hlo.json").write_text('{"replicas": 3}')
    done = run("compile", program, "--jax-python", tmp_path / "none")
    assert done.exit_code == 1 and "No such file or directory. See --jax-python." in done.output
    bare = subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"])
    assert bare.returncode == 0
    done = run("compile", program, "--jax-python", tmp_path / "bare" / "bin" / "python")
    assert done.exit_code == 1 and done.output.count("\n") == 1
    assert "for jax. Install: pip install" in done.output


def test_programs_that_do_not_exist_are_refused(tmp_path):
    path = tmp_path / "some.hlo"
    done = run("extract", "bert-base", "beam", path)
    assert done.exit_code == 2 and "bert-base generates no tokens" in done.output
    done = run("extract", "tiny", "greedy", path, "--replicas", "4")
    assert done.exit_code == 2 and "only an update has several replicas" in done.output
    done = run("extract", "tiny", "update", tmp_path / "no" / "some.hlo")
    assert done.exit_code == 2 and "there is no folder" in done.output
    assert not [*tmp_path.iterdir()]
