"""The benchmark of `keras-transformer serve`."""

import re
import sys

import pytest
from pipelines import translator, write_run
from support import run_benchmark

pytest.importorskip("uvicorn")
pytest.importorskip("multipart")

LINES = ["a cat runs", "the big dog", "a dog"]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="pins processes and reads /proc")
def test_the_server_and_a_loop_answer_all_requests(tmp_path):
    run, lines = write_run(translator(), tmp_path / "tiny"), tmp_path / "lines.txt"
    lines.write_text("\n".join(LINES))
    small = ["--requests", "6", "--repeats", "2", "--clients", "1,3", "--memory", "15"]
    done = run_benchmark("server.py", run, "--lines", lines, *small)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"(\w+, \d+ [a-z 1]+?)\W+(\d+) \(.*(\d) of (\d)", done.stdout)
    names = [
        "loop, 1 text a call",
        "loop, 32 texts a call",
        "server, 1 clients",
        "server, 3 clients",
    ]
    assert [name for name, *_ in rows] == names, done.stdout
    assert all(int(rate) > 0 and (other, of) == ("0", "3") for _, rate, other, of in rows)
    memory = re.findall(r"(\d+) requests: ([\d,]+) MB", done.stdout)
    assert [int(count) for count, _ in memory] == [2, 4, 6, 8, 10, 12, 14, 15]


def test_the_requests_of_the_measurement_of_memory_vary():
    from server import varied

    inputs = varied(LINES * 2, 500)
    assert inputs == varied(LINES * 2, 500)
    lists = [texts for texts in inputs if isinstance(texts, list)]
    assert 20 < len(lists) < 100 and {len(texts) for texts in lists} == {1, 2, 3, 4}
    assert "" in {text for texts in lists for text in texts}
