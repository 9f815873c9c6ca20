"""The SavedModel in TensorFlow's C API generates the tokens that it generates in Python."""

import functools
import sys

import pytest
from support import run_benchmark


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="knows the names of the libraries on Linux")
def test_the_tokens_are_those_of_python(tmp_path):
    """The benchmark fails if a token differs."""
    done = functools.partial(run_benchmark, "pretrained.py")(
        *("--shape=smoke-opus-mt", "--peers=ours,ours-c", "--batches=2", "--repeats=1"),
        *("--seconds=0.01", "--folder", tmp_path / "files"),
    )
    assert done.returncode == 0, done.stderr
    assert "SavedModel, C API" in done.stdout
