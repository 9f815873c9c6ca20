"""The benchmark of the streams of `keras-transformer serve`."""

import re
import sys

import pytest
from pipelines import generator, write_run
from support import run_benchmark

from keras_transformer.pipelines import Run
from keras_transformer.text.chat_template import ChatTemplate

pytest.importorskip("uvicorn")
pytest.importorskip("multipart")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="pins processes and reads /proc")
@pytest.mark.parametrize("most", ["8", "1"])
def test_clients_of_streams_get_the_same_answers(most, tmp_path):
    run = write_run(generator(), tmp_path / "tiny")
    Run(run).write_chat(ChatTemplate("{{ messages[0].content[:2] }} "))
    small = ["--clients", "1,3", "--tokens", "4", "--questions", "3", "--repeats", "1"]
    small += ["--max-streams", most]
    done = run_benchmark("streams.py", run, *small)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"│ (\d) +│ ([\d.]+) .* (\d) of (\d)", done.stdout)
    assert [(clients, other, of) for clients, _, other, of in rows] == [
        ("1", "0", "3"),
        ("3", "0", "3"),
    ], done.stdout
    assert all(float(rate) > 0 for _, rate, *_ in rows)
