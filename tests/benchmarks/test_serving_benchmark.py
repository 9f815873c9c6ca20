"""The benchmark of one version of a SavedModel."""

import re
import sys

import pytest
from pipelines import translator
from support import run_benchmark

from keras_transformer.export import export_saved_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving")
    return export_saved_model(translator(), folder / "translator", ["a cat", "the dog"])["path"]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("loader", ["session", pytest.param("python", marks=pytest.mark.long)])
def test_memory_and_time_of_every_batch_size_are_measured(version, loader):
    done = run_benchmark("serving.py", version, "--loader", loader, "--batch-sizes", "1,3")
    assert done.returncode == 0, done.stderr
    imported, loaded = re.findall(r"([\d,]+) MB with", done.stdout)
    rows = re.findall(r"(serving_default|n_best)\W+(\d)\W+[\d.]+\W+[\d.]+\W+([\d,]+)", done.stdout)
    assert [(name, size) for name, size, _ in rows] == [
        ("serving_default", "1"), ("serving_default", "3"), ("n_best", "1"), ("n_best", "3"),
    ]  # fmt: skip
    memory = [int(text.replace(",", "")) for text in (imported, loaded, *(x[2] for x in rows))]
    assert 100 < memory[0] <= memory[1] and min(memory[2:]) > memory[0]
