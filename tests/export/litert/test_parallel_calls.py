"""Calls of several engines of a .tflite file run at the same time, each in its own process."""

import gc
import os
import pathlib
import signal
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf
from waiting import until

from keras_transformer import files
from keras_transformer.export import apart
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert import engines
from keras_transformer.export.litert.engines import (
    COMPILED,
    IN_MEMORY,
    INTERPRETED,
    CompiledEngine,
    InterpretedEngine,
)
from keras_transformer.export.litert.parallel import open_engines
from keras_transformer.export.litert.runtime import LiteRTFile
from keras_transformer.export.litert.tensorflow_converter import convert_functions
from keras_transformer.export.runtime import OpenGenerator, Pool

X = np.array([[1, 2.5, -3]], np.float32)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    matrix = tf.Variable(np.random.default_rng(1).normal(size=(3, 5)).astype("float32"))

    @tf.function(input_signature=[tf.TensorSpec([1, 3], name="x")], autograph=False)
    def product(x):
        return {"y": x @ matrix}

    path = tmp_path_factory.mktemp("parallel") / "product.tflite"
    function = product.get_concrete_function()
    path.write_bytes(convert_functions(None, {"product": function}, read=[matrix]))
    return path


def processes(opened):
    """Returns the numbers of the processes of engines."""
    return [engine._process.pid for engine in opened]


def test_one_engine_and_interpreters_run_in_this_process(file):
    assert [type(engine) for engine in open_engines(file, COMPILED)] == [CompiledEngine]
    assert [type(e) for e in open_engines(file, INTERPRETED, count=2)] == [InterpretedEngine] * 2


@pytest.mark.parametrize("shared", [False, True], ids=["own weights", "shared weights"])
def test_several_engines_answer_like_one(file, shared, tmp_path, monkeypatch):
    if shared and not IN_MEMORY:
        pytest.skip("the cache of packed weights needs Linux")
    monkeypatch.setattr(engines, "LARGE", 0 if shared else 2**40)
    path = tmp_path / "model.tflite"
    path.write_bytes(file.read_bytes())
    opened = open_engines(path, COMPILED, count=2)
    path.unlink()
    path.write_bytes(b"another file")
    assert len({os.getpid(), *processes(opened)}) == 3
    expected = CompiledEngine(file).run("product", x=X)["y"]
    for engine in (*opened, *opened):
        assert engine.signatures == ("product",)
        np.testing.assert_array_equal(engine.run("product", x=X)["y"], expected)
        with pytest.raises(ValueError, match=r"`x` of product must be float32 of shape \(1, 3\)"):
            engine.run("product", x=X[:, :2])


@pytest.mark.skipif(not IN_MEMORY, reason="the cache of packed weights needs Linux")
def test_the_processes_share_the_packed_weights(file, monkeypatch):
    monkeypatch.setattr(engines, "LARGE", 0)
    opened, caches = open_engines(file, COMPILED, count=2), []
    for engine, number in zip(opened, processes(opened), strict=True):
        engine.run("product", x=X)
        maps = pathlib.Path(f"/proc/{number}/maps").read_text().splitlines()
        caches.append({line.split()[4] for line in maps if "packed weights" in line})  # inodes
    assert len(caches[0]) == 1 and caches[0] == caches[1]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGSTOP")
def test_a_call_does_not_wait_for_one_that_takes_longer(file):
    slow, fast = open_engines(file, COMPILED, count=2)
    os.kill(slow._process.pid, signal.SIGSTOP)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(slow.run("product", x=X)["y"]))
    thread.start()
    try:
        answer = fast.run("product", x=2 * X)["y"]
        assert thread.is_alive() and not answers
    finally:
        os.kill(slow._process.pid, signal.SIGCONT)
    thread.join()
    np.testing.assert_array_equal(2 * answers[0], answer)


def test_the_processes_outlive_the_thread_that_opened_the_file(file):
    opened = []
    thread = threading.Thread(target=lambda: opened.extend(open_engines(file, COMPILED, count=2)))
    thread.start()
    thread.join()
    for _ in range(2):  # the system would kill them as soon as the thread has ended
        for engine in opened:
            assert engine.run("product", x=X)["y"].shape == (1, 5)


class OpenFile(LiteRTFile):
    """A file as far as its engines are concerned."""

    def __init__(self, opened):
        self._engines = Pool(opened)


def test_the_processes_end_with_the_block_around_a_file(file):
    opened = open_engines(file, COMPILED, count=2)
    running = [(number, files._start(number)) for number in processes(opened)]
    logs = [engine._log for engine in opened]
    with OpenFile(opened) as model:
        assert model.run_signature("product", x=X)["y"].shape == (1, 5)
        assert all(files._runs(*process) for process in running)
    assert until(lambda: not any(files._runs(*process) for process in running))
    assert all(log.closed for log in logs), "an open file would be a ResourceWarning"
    with pytest.raises(ValueError, match=r"This export has been closed\. Open it again\."):
        model.run_signature("product", x=X)
    with pytest.raises(ExportError, match="has been closed. Open the export again."):
        opened[0].run("product", x=X)  # it does not start again


def test_a_file_without_processes_can_be_closed(file):
    model = OpenFile(open_engines(file, COMPILED))
    model.close()
    model.close()
    with pytest.raises(ValueError, match="has been closed"):
        model.run_signature("product", x=X)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGSTOP")
def test_a_call_that_runs_while_a_file_is_closed_is_told(file):
    opened, errors = open_engines(file, COMPILED, count=2), []
    model, stopped = OpenFile(opened), processes(opened)
    for number in stopped:
        os.kill(number, signal.SIGSTOP)

    def call():
        try:
            model.run_signature("product", x=X)
        except (ValueError, ExportError) as error:
            errors.append(str(error))

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert until(lambda: model._engines._free.empty())  # two run, one waits
    model.close()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert len(errors) == 3 and all("has been closed" in error for error in errors)
    assert not any("\n" in error for error in errors)
    assert all(engine._process.returncode == -signal.SIGKILL for engine in opened)


def test_a_call_in_this_process_ends_although_its_file_is_closed(file, monkeypatch):
    model, begun, goes_on, answers = OpenFile(open_engines(file, COMPILED)), *events(2), []
    run = CompiledEngine.run

    def slow(engine, *arguments, **inputs):
        begun.set()
        assert goes_on.wait(120)
        return run(engine, *arguments, **inputs)

    monkeypatch.setattr(CompiledEngine, "run", slow)
    thread = threading.Thread(target=lambda: answers.append(model.run_signature("product", x=X)))
    thread.start()
    assert begun.wait(120)
    model.close()
    goes_on.set()
    thread.join(120)
    monkeypatch.undo()
    expected = CompiledEngine(file).run("product", x=X)["y"]
    np.testing.assert_array_equal(answers[0]["y"], expected)


def events(count):
    return [threading.Event() for _ in range(count)]


def test_the_processes_end_with_their_engines(file):
    opened = open_engines(file, COMPILED, count=2)
    running = [(number, files._start(number)) for number in processes(opened)]
    assert all(files._runs(*process) for process in running)
    del opened
    gc.collect()
    assert until(lambda: not any(files._runs(*process) for process in running))


def test_after_an_interrupted_call_no_call_gets_its_answer(file, monkeypatch):
    engine, other = open_engines(file, COMPILED, count=2)

    def interrupt(stream):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(apart, "receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            engine.run("product", x=X)
    once = other.run("product", x=X)["y"]
    np.testing.assert_array_equal(engine.run("product", x=2 * X)["y"], 2 * once)
    with monkeypatch.context() as patched:
        patched.setattr(apart, "receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            engine.run("product", x=X)
    engine._process.kill()  # its answer may be in the pipe already
    np.testing.assert_array_equal(engine.run("product", x=2 * X)["y"], 2 * once)
    with pytest.raises(ValueError, match="must be float32"):
        other.run("product", x=X.astype("int32"))
    assert other.run("product", x=X)["y"].shape == (1, 5), "an error is an answer"


def test_a_new_process_takes_the_place_of_one_that_was_killed(file, tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(file.read_bytes())
    engine, other = open_engines(path, COMPILED, count=2)
    path.unlink()
    engine._process.kill()
    if os.path.exists(engines.DESCRIPTORS):  # elsewhere it cannot find the file any more
        with pytest.raises(ExportError, match="perhaps there is not enough memory"):
            engine.run("product", x=X)
        expected = other.run("product", x=X)["y"]
        np.testing.assert_array_equal(engine.run("product", x=X)["y"], expected)


def test_wrong_inputs_leave_an_engine_usable(file):
    engine, _ = open_engines(file, COMPILED, count=2)
    with pytest.raises(TypeError):
        engine.run("product", x=np.array([None]))
    assert engine.run("product", x=X)["y"].shape == (1, 5)


def test_a_program_that_contains_python_starts_no_processes(file, monkeypatch):
    """It would start itself."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    opened = open_engines(file, COMPILED, count=2)
    assert [type(engine) for engine in opened] == [CompiledEngine] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_neither_uses_nor_ends_the_engines(file, monkeypatch):
    """Two processes would read each other's answers from the same pipe."""
    engine, other = open_engines(file, COMPILED, count=2)
    monkeypatch.setattr(os, "getpid", lambda: 1)  # as in a forked process
    with pytest.raises(ExportError, match="from which this one was forked. Open the export again"):
        engine.run("product", x=X)
    engine._finish()
    monkeypatch.undo()
    assert engine._process.poll() is None
    assert engine.run("product", x=X)["y"].shape == other.run("product", x=X)["y"].shape


def test_a_file_that_litert_cannot_read_is_refused(tmp_path):
    path = tmp_path / "broken.tflite"
    path.write_bytes(b"no model")
    with pytest.raises(RuntimeError):
        open_engines(path, COMPILED, count=2)


def test_a_generator_without_attention_weights_refuses_alignments():
    assert not OpenGenerator().aligns
    with pytest.raises(ValueError, match=r"This export does not return attention weights\. Use"):
        OpenGenerator().align(["a"])
