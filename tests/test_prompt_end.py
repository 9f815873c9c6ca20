"""A signal ends a command also during a long call that runs no Python code."""

import os
import signal
import subprocess
import sys
import time

import pytest

from keras_transformer import files
from keras_transformer.native_code import SIGNALS, ends_at_once, ends_promptly

PROGRAM = """
import hashlib, pathlib, signal, sys

# A shell lets its background processes ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
from keras_transformer.cli.command import start
from keras_transformer.native_code import ends_promptly
from keras_transformer.files import draft_of

start()
folder = pathlib.Path(sys.argv[1])
try:
    with ends_promptly(folder, folder / "none", folder / "new", seconds=0.2):
        (folder / "new").mkdir()
        draft_of(folder / "new" / "export").mkdir()
        draft_of(folder / "export").mkdir()
        draft_of(folder / "file.tflite").write_text("half")
        (folder / "kept").mkdir()
        print("ready", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 300_000_000)  # minutes, like a call of TensorFlow
finally:
    print("orderly", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_during_a_long_call(number, tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.3)  # until the call has begun
            process.send_signal(number)
            assert process.wait(timeout=60) == 128 + number  # long before the call would end
            assert process.stdout.read() == b""
        finally:
            process.kill()
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


COMMAND = """
import hashlib, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
from keras_transformer.cli import main, predict
from keras_transformer.opening import stream
from keras_transformer.tasks.translation import pipeline
from keras_transformer.training import evaluate


def blocks(*args, **kwargs):
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 300_000_000)


predict.open_lines = evaluate.evaluate_files = stream.score_files = blocks
pipeline.Translator.from_run = lambda *args: None
main.search_of_run = lambda *args: None
main.main()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("command", ["translate", "evaluate", "score"])
def test_a_signal_ends_a_command_during_a_long_search(command, tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").write_text(
        'task.kind = "translation"\ndata.source = "cldr"\n'
    )
    (tmp_path / "in.txt").write_text("in 17 weeks\n")
    options = {
        "translate": ["--input", "in.txt", "--output", "out.txt"],
        "evaluate": ["--source", "in.txt", "--reference", "in.txt"],
        "score": ["--source", "in.txt", "--target", "in.txt"],
    }[command]
    before = {*tmp_path.iterdir()}
    words = [sys.executable, "-c", COMMAND, command, "run", *options]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 128 + signal.SIGTERM
        finally:
            process.kill()
    assert {*tmp_path.iterdir()} == before


def test_a_block_that_ends_in_time_decides_about_the_end(tmp_path):
    """The exception of the signal's handler passes on, and the signals are as before."""
    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), ends_promptly(tmp_path, seconds=0.1):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
    finally:
        signal.signal(signal.SIGINT, handler)
    time.sleep(0.2)  # longer than the time for an orderly end
    after = signal.set_wakeup_fd(before)
    assert after == before


AT_ONCE = """
import hashlib, os, signal
from keras_transformer.native_code import ends_at_once

signal.signal(signal.SIGINT, signal.default_int_handler)
with ends_at_once():
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # as while TensorFlow's log is held back
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 300_000_000)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_process_with_nothing_to_lose_at_once(number):
    command = [sys.executable, "-c", AT_ONCE]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(number)
            output, errors = process.communicate(timeout=60)
            assert (process.returncode, output) == (128 + number, "")
            assert errors == f"Stopped by {number.name}.\n"
        finally:
            process.kill()


def test_the_handlers_are_as_before_a_block_that_ends_at_once():
    before = [signal.getsignal(number) for number in SIGNALS]
    with ends_at_once():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_drafts_of_other_processes_stay(tmp_path):
    other = tmp_path / f".x.draft-{'0' * 8}-1-1-{'0' * 8}"
    other.mkdir()
    files.draft_of(tmp_path / "own").mkdir()
    files.remove_own_drafts(tmp_path)
    assert [*tmp_path.iterdir()] == [other]
