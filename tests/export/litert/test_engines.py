"""LiteRT's runtimes for Python: equal outputs, weights stored once, refusals, no log."""

import contextlib
import errno
import gc
import os
import pathlib
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.export.litert import engines
from keras_transformer.export.litert.engines import (
    IN_MEMORY,
    CompiledEngine,
    InterpretedEngine,
    PackedWeights,
)
from keras_transformer.export.litert.tensorflow_converter import convert_functions

B, D, STEPS = 3, 7, 4
# Loads a file of which one signature is used, and prints the megabytes that this takes.
PROGRAM = """
import sys
import numpy as np
from keras_transformer.export.litert import engines
engines.LARGE = 0 if sys.argv[1] in ("packed before", "shared") else 2**40
def memory():
    status = open("/proc/self/smaps_rollup").read().split()  # counts a shared page once
    return sum(int(status[status.index(name) + 1]) for name in ("Pss_Anon:", "Pss_Shmem:")) / 1e3
before = memory()
kind, path, width = sys.argv[1:]
if kind == "shared":
    weights = engines.PackedWeights(path)
    loaded = [engines.CompiledEngine(path, weights=weights) for _ in range(2)]
else:
    loaded = [getattr(engines, {"packed before": "CompiledEngine"}.get(kind, kind))(path)]
x = np.ones((3, int(width)), np.float32)
for engine in loaded:
    engine.run("loop_3", x=x)
print(memory() - before)
"""


def products(width, rows):
    """Returns a model of one matrix, and functions that use it: once, and in a loop."""
    model = keras.Sequential([keras.layers.Dense(width, use_bias=False)])
    model.build((None, width))
    rng = np.random.default_rng(1)
    model.set_weights([rng.normal(size=(width, width), scale=width**-0.5)])

    def once(x):
        return {"y": model(x), "sum": tf.reduce_sum(x, -1)}

    def loop(x):
        _, y = tf.while_loop(lambda i, _: i < STEPS, lambda i, y: (i + 1, model(y)), (0, x))
        return {"y": y + 1, "sum": tf.reduce_sum(x, -1)}

    functions = {}
    for count in rows:
        spec = tf.TensorSpec([count, width], tf.float32, name="x")
        functions[f"once_{count}"] = tf.function(once).get_concrete_function(x=spec)
        functions[f"loop_{count}"] = tf.function(loop).get_concrete_function(x=spec)
    return model, functions


def caches_in_use():
    """Returns the number of open caches of packed weights of this process."""
    names = []
    for link in pathlib.Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the folder itself
            names.append(os.readlink(link))
    return sum("packed weights" in name for name in names)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("engines") / "model.tflite"
    path.write_bytes(convert_functions(*products(D, (B, 1))))
    return path


def test_both_runtimes_return_the_same(file):
    compiled, interpreted = CompiledEngine(file), InterpretedEngine(file)
    expected = {"once_3", "loop_3", "once_1", "loop_1"}
    assert set(compiled.signatures) == set(interpreted.signatures) == expected
    assert compiled.inputs_of("loop_3") == ("x",)
    rng = np.random.default_rng(2)
    for name in (*compiled.signatures, *compiled.signatures):  # again, with other inputs
        x = rng.normal(size=(int(name[-1]), D)).astype("float32")
        ours, theirs = compiled.run(name, x=x), interpreted.run(name, x=x)
        assert set(ours) == set(theirs) == {"y", "sum"}
        for key, value in ours.items():
            np.testing.assert_array_equal(value, theirs[key])


def test_the_products_are_those_of_the_model(file):
    model, _ = products(D, ())
    x = np.random.default_rng(3).normal(size=(B, D)).astype("float32")
    (matrix,) = model.get_weights()
    engine = CompiledEngine(file)
    np.testing.assert_allclose(engine.run("once_3", x=x)["y"], x @ matrix, atol=1e-5)
    expected = x @ np.linalg.matrix_power(matrix.astype("float64"), STEPS) + 1
    np.testing.assert_allclose(engine.run("loop_3", x=x)["y"], expected, atol=1e-5)


def test_outputs_do_not_change_when_the_signature_runs_again(file):
    engine = CompiledEngine(file)
    first = engine.run("once_1", x=np.ones((1, D), "float32"))
    kept = first["y"].copy()
    engine.run("once_1", x=np.zeros((1, D), "float32"))
    np.testing.assert_array_equal(first["y"], kept)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"x": np.ones((1, D), "float32")}, r"`x` of once_3 .* \(3, 7\)\. Received.*\(1, 7\)"),
        ({"x": np.ones((B, D), "int32")}, r"`x` of once_3 must be float32 .* Received: int32"),
        ({"x": np.ones((D, B), "float32")}, r"of shape \(7, 3\)"),
        ({}, r"once_3 has the inputs x\. Received: none"),
        (
            {"x": np.ones((B, D), "float32"), "z": np.ones(1)},
            r"once_3 has the inputs x\. Received: x, z",
        ),
    ],
)
def test_inputs_that_litert_would_misread_are_refused(file, inputs, message):
    with pytest.raises(ValueError, match=message):
        CompiledEngine(file).run("once_3", **inputs)


@pytest.mark.slow
@pytest.mark.skipif(not IN_MEMORY, reason="the cache of packed weights needs Linux")
def test_weights_are_stored_once_in_memory(tmp_path, python):
    width = 1024  # 4.2 MB
    path = tmp_path / "model.tflite"
    path.write_bytes(convert_functions(*products(width, (3, 2, 1))))
    used = {
        name: float(python(PROGRAM, name, path, width))
        for name in ("InterpretedEngine", "CompiledEngine", "packed before", "shared")
    }
    assert used["InterpretedEngine"] > 6 * 4.2  # a copy for each of three products and three loops
    assert used["CompiledEngine"] < 3 * 4.2
    assert used["packed before"] < used["CompiledEngine"] - 0.9 * 4.2  # without LiteRT's buffer
    assert used["shared"] < used["packed before"] + 0.5 * 4.2


def test_libraries_that_no_engine_needs_are_not_imported(python):
    """These and what they import take 7 MB, more than some models."""
    imported = python(
        "import sys, keras_transformer.export.litert.parallel\n"
        "print(*{'email', 'http', 'importlib.metadata', 'ssl', 'tensorflow'} & {*sys.modules})"
    )
    assert not imported.split()


@pytest.mark.skipif(not IN_MEMORY, reason="the cache of packed weights needs Linux")
def test_engines_with_shared_weights_read_the_same_file(file, tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "LARGE", 0)
    path = tmp_path / "model.tflite"
    path.write_bytes(file.read_bytes())
    weights = PackedWeights(path)
    path.unlink()
    path.write_bytes(b"another file")
    x = np.random.default_rng(2).normal(size=(B, D)).astype("float32")
    expected = InterpretedEngine(file).run("loop_3", x=x)["y"]
    first, second = (CompiledEngine(path, weights=weights) for _ in range(2))
    del weights
    for engine in (first, second, first):
        np.testing.assert_array_equal(engine.run("loop_3", x=x)["y"], expected)
    assert caches_in_use() == 1
    del first, second, engine
    gc.collect()
    assert caches_in_use() == 0


def test_a_system_without_anonymous_files_needs_none(file, monkeypatch):
    def refuse(name):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))  # as with vm.memfd_noexec = 2

    monkeypatch.setattr(engines, "LARGE", 0)
    monkeypatch.setattr(os, "memfd_create", refuse, raising=False)
    weights = PackedWeights(file)
    assert (weights.path, weights.cache) == (str(file), IN_MEMORY)
    x = np.random.default_rng(2).normal(size=(B, D)).astype("float32")
    ours = CompiledEngine(file, weights=weights).run("loop_3", x=x)["y"]
    np.testing.assert_array_equal(ours, InterpretedEngine(file).run("loop_3", x=x)["y"])


def test_the_life_of_an_engine_is_silent(file, capfd):
    engine = CompiledEngine(file)
    engine.run("once_3", x=np.ones((B, D), "float32"))
    del engine
    gc.collect()
    assert capfd.readouterr().err == ""


def test_a_file_that_is_no_model_is_refused(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(b"nothing")
    for engine in (CompiledEngine, InterpretedEngine):
        with pytest.raises((RuntimeError, ValueError)):
            engine(path)


def test_a_missing_package_is_named(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "ai_edge_litert.cpu_options", None)
    with pytest.raises(ValueError, match=r"ai-edge-litert in version 2\.3 or newer\. Install"):
        CompiledEngine(file)
