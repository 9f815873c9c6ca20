"""Exports that run in processes of their own: the same answers, errors and ends as in this one."""

import signal
import subprocess
import sys

import grappler
import numpy as np
import pytest
import tensorflow as tf
from exporting import asked
from waiting import until

from keras_transformer import Beam, files
from keras_transformer.export import LiteRTOptions, apart, export_litert, export_saved_model
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.apart import EnginesApart, engines_for
from keras_transformer.export.litert.engines import COMPILED
from keras_transformer.export.litert.parallel import open_engines
from keras_transformer.export.litert.tensorflow_converter import convert_functions
from keras_transformer.export.saved_model.apart import loaders_for
from keras_transformer.export.saved_model.loaders import LOADERS

# Opens a file in another process, and prints the number of that process.
PARENT = """
import sys, time
from keras_transformer.export.litert.apart import EnginesApart
engine, = EnginesApart()(sys.argv[1], "compiled")
print(engine._process.pid, flush=True)
time.sleep(60)
"""


# An engine with an unexpected error, and an answer that cannot be sent.
OBJECTS = """
from keras_transformer.export.apart import serve
class Engine:
    signatures = ["x"]
    def run(self, name):
        if name == "wrong":
            raise KeyError("the cause")
        class Outputs:
            def items(self):
                raise TypeError("an object")
        return Outputs()
serve(Engine)
"""


class Doubling(tf.Module):
    """A function that LiteRT and TensorFlow can run, with a weight."""

    def __init__(self):
        self.factor = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([3], name="x")], autograph=False)
    def run(self, x):
        with tf.control_dependencies([tf.debugging.assert_none_equal(x, 5.0, message="no fives")]):
            return {"y": self.factor * x}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    variable = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([3], name="x")], autograph=False)
    def double(x):
        return {"y": variable * x}

    path = tmp_path_factory.mktemp("apart") / "double.tflite"
    function = double.get_concrete_function()
    path.write_bytes(convert_functions(None, {"double": function}, read=[variable]))
    return path


@pytest.fixture
def large(monkeypatch):
    """All models count as large."""
    monkeypatch.setattr(apart, "LARGE", 1)


def test_an_engine_apart_answers_like_one_in_this_process(file):
    x = np.array([1, 2.5, -3], np.float32)
    with EnginesApart() as engines:
        (ours,), (theirs,) = engines(file, COMPILED), open_engines(file, COMPILED)
        assert ours.signatures == theirs.signatures == ("double",)
        for factor in (1, 2):  # it answers several times
            answers = [engine.run("double", x=factor * x)["y"] for engine in (ours, theirs)]
            np.testing.assert_array_equal(*answers)
        for wrong in ({"x": x[:2]}, {"x": x.astype("int32")}, {"z": x}):
            messages = []
            for engine in (ours, theirs):
                with pytest.raises(ValueError) as caught:
                    engine.run("double", **wrong)
                messages.append((type(caught.value), str(caught.value)))
            assert messages[0] == messages[1]
        np.testing.assert_array_equal(ours.run("double", x=x)["y"], 2 * x)
        process = ours._process
    assert process.returncode is not None, "it has ended with the block"


def test_a_file_that_litert_cannot_read_is_reported_as_in_this_process(tmp_path):
    path = tmp_path / "broken.tflite"
    path.write_bytes(b"no model")
    errors = []
    for opened in (EnginesApart(), open_engines):
        with pytest.raises(RuntimeError) as caught:
            opened(path, COMPILED)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_an_engine_whose_process_is_killed_is_reported(file):
    with EnginesApart() as engines:
        (engine,) = engines(file, COMPILED)
        engine._process.send_signal(signal.SIGKILL)
        for _ in range(2):
            message = "that runs the exported model ended with -9; perhaps there is not enough mem"
            with pytest.raises(ExportError, match=message):
                engine.run("double", x=np.zeros(3, np.float32))


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for Python is a shell script")
@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "echo first >&2; echo no module >&2; exit 3",
            r"ended with 3; .* enough memory\. no module$",
        ),
        (
            "echo a library prints this line; exec sleep 60",
            "something else than an answer: 'a library prints'",
        ),
    ],
    ids=["the last line of its errors", "what is no answer"],
)
def test_a_process_that_does_not_answer_is_reported(script, message, file, tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(ExportError, match=message):
        EnginesApart()(file, COMPILED)


def test_a_python_that_is_missing_is_reported(file, monkeypatch):
    monkeypatch.setattr(sys, "executable", "no-python-here")
    with pytest.raises(ExportError, match="could not start: .*no-python-here"):
        EnginesApart()(file, COMPILED)


def test_modules_of_the_working_directory_are_not_imported(file, tmp_path, monkeypatch):
    for name in ("runpy", "queue", "keras_transformer"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a module of the folder')")
    monkeypatch.chdir(tmp_path)
    with EnginesApart() as engines:
        (engine,) = engines(file, COMPILED)
        assert engine.signatures == ("double",)


def test_unexpected_errors_are_shown(tmp_path, monkeypatch):
    (tmp_path / "objects.py").write_text(OBJECTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    with apart.EngineApart("objects") as engine:
        with pytest.raises(RuntimeError, match=r"(?s)^KeyError: 'the cause'\n.*objects\.py.*line"):
            engine.run("wrong")
        with pytest.raises(ExportError, match=r"ended with 1; .*TypeError: an object$"):
            engine.run("x")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_an_engine_ends_when_its_parent_is_killed(file):
    command = [sys.executable, "-c", PARENT, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        try:
            number = int(parent.stdout.readline())
            start = files._start(number)
            assert files._runs(number, start)
        finally:
            parent.kill()
    assert until(lambda: not files._runs(number, start))


@pytest.mark.long
@pytest.mark.slow
def test_a_saved_model_apart_answers_like_one_in_this_process(translator, large, tmp_path):
    module = Doubling()
    tf.saved_model.save(module, str(tmp_path / "m"), signatures={"double": module.run})
    x = np.array([1, 2, 3], np.float32)
    for ours, theirs in zip(loaders_for(translator.model), LOADERS, strict=True):
        assert ours[1] == theirs[1] and ours[0] is not theirs[0]
        for load in (ours[0], theirs[0]):
            with load(tmp_path / "m") as model:
                assert [name for name in model.signatures if name[0] != "_"] == ["double"]
                np.testing.assert_array_equal(model.run("double", x=x)["y"], 2 * x)
                with pytest.raises(tf.errors.OpError, match="no fives"):
                    model.run("double", x=5 * x / x)
            with pytest.raises(OSError, match="nowhere"):
                load(tmp_path / "nowhere")


def test_small_models_are_run_in_this_process(translator):
    assert loaders_for(translator.model) == [*LOADERS]
    with engines_for(translator.model) as engines:
        assert engines is open_engines


def without_path(report):
    """Returns a report without the path, whose name the documents of a version contain."""
    return {name: value for name, value in report.items() if name not in ("path", "bytes")}


@pytest.mark.long
@pytest.mark.slow
def test_the_report_of_a_file_is_the_same(unigram_translator, sentences, tmp_path, monkeypatch):
    options = {"search": Beam(2), "beam_only": True, "batch_sizes": (2,), "tokenizer": True}
    reports = []
    for limit in (2**40, 1):
        monkeypatch.setattr(apart, "LARGE", limit)
        path = tmp_path / f"{limit}.tflite"
        reports.append(
            export_litert(
                unigram_translator, path, sentences[:9], **asked(LiteRTOptions, **options)
            )
        )
    assert "strings" in reports[0]
    assert without_path(reports[0]) == without_path(reports[1])


@pytest.mark.long
@pytest.mark.slow
def test_the_report_of_a_version_is_the_same(light, sentences, tmp_path, monkeypatch):
    reports = []
    for limit in (2**40, 1):
        monkeypatch.setattr(apart, "LARGE", limit)
        with grappler.on():
            reports.append(export_saved_model(light, tmp_path / str(limit), sentences[:5]))
    assert without_path(reports[0]) == without_path(reports[1])


@pytest.mark.long
@pytest.mark.slow
def test_a_process_that_is_killed_leaves_no_export(
    light, large, sentences, tmp_path, monkeypatch, kind="saved-model"
):
    """As the system does when memory is short."""
    run = apart.EngineApart.run

    def run_and_kill(engine, *arguments, **inputs):
        engine._process.kill()
        return run(engine, *arguments, **inputs)

    monkeypatch.setattr(apart.EngineApart, "run", run_and_kill)
    export = {"litert": export_litert, "saved-model": export_saved_model}[kind]
    with pytest.raises(ExportError, match="ended with -9; perhaps there is not enough memory"):
        export(light, tmp_path / "new" / "x.tflite", sentences[:3])
    assert list(tmp_path.iterdir()) == []
