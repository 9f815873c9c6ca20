"""The command from its start to its end by a signal."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time

import pipelines
import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("multipart")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals"),
]
COMMAND = """
import signal, sys
# A shell lets its background processes ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
from keras_transformer.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return pipelines.write_run(pipelines.translator(), tmp_path_factory.mktemp("run") / "tiny")


@contextlib.contextmanager
def started(run, *options):
    """A context with the process of the command, whose first line has been written."""
    languages = ["--source-language", "en", "--target-language", "de"]
    command = [sys.executable, "-c", COMMAND, "serve", run, "--port", "0", *languages, *options]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=quiet) as process:
        try:
            assert process.stderr.readline() == f"loading {run} ...\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_the_model_is_loaded_ends_the_command_at_once(number, run):
    with started(run) as process:
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (128 + number, f"Stopped by {number.name}.\n")


def exchange(port, method, path, body=None):
    """Returns the status of a response, and its body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path, body, {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read().decode()


def test_sigterm_ends_the_server_when_its_requests_are_answered(run):
    with started(run, "--batch-wait", "60000", "--quiet") as process:  # the requests wait
        line = process.stderr.readline()
        assert line.startswith("serving tiny (translation) on http://127.0.0.1:"), line
        port = int(line.rpartition(":")[2])
        body = json.dumps({"q": ["a cat runs", "the big dog"], "source": "en", "target": "de"})
        with concurrent.futures.ThreadPoolExecutor(3) as threads:
            ask = (exchange, port, "POST", "/translate", body)
            asked = [threads.submit(*ask) for _ in range(3)]
            while "waiting_inputs 6.0\n" not in exchange(port, "GET", "/metrics")[1]:
                time.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            answers = [one.result() for one in asked]
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    assert [status for status, _ in answers] == [200] * 3
    assert all(len(json.loads(text)["translatedText"]) == 2 for _, text in answers)
