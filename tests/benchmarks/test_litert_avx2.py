"""Checks of `benchmarks/litert_avx2.py`."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from support import BENCHMARKS

PACK = """
import sys

import numpy as np
from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.cpu_options import CpuOptions
from ai_edge_litert.hardware_accelerator import HardwareAccelerator
from ai_edge_litert.options import Options

model, cache = sys.argv[1:]
options = Options(
    hardware_accelerators=HardwareAccelerator.CPU,
    cpu_options=CpuOptions(1, xnnpack_weight_cache_path=cache),
)
compiled = CompiledModel.from_file(model, options=options)
print(sys.modules["ai_edge_litert"].__file__)
"""


def original():
    """Returns the environment without the copy that `make test-avx2` puts on the path."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    pytest.importorskip("ai_edge_litert")
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip("needs Linux on x86-64")
    folder = tmp_path_factory.mktemp("copy")
    command = [sys.executable, BENCHMARKS / "litert_avx2.py", folder]
    done = subprocess.run(command, capture_output=True, text=True, env=original())
    assert done.returncode == 0, done.stderr
    assert "libLiteRt.so" in done.stdout
    return folder


def test_the_copy_packs_weights_for_other_kernels(copy, tmp_path):
    if " avx512f " not in pathlib.Path("/proc/cpuinfo").read_text():
        pytest.skip("needs a processor with AVX-512")
    import tensorflow as tf

    weights = tf.constant(np.random.default_rng(1).normal(size=[200, 300]), tf.float32)
    product = tf.function(lambda x: x @ weights).get_concrete_function(
        tf.TensorSpec([4, 200], tf.float32)
    )
    model = tmp_path / "model.tflite"
    model.write_bytes(tf.lite.TFLiteConverter.from_concrete_functions([product]).convert())

    def pack(name, **variables):
        cache = tmp_path / name
        command = [sys.executable, "-c", PACK, model, cache]
        done = subprocess.run(command, env=original() | variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert (f"{copy}/ai_edge_litert" in done.stdout) == bool(variables)
        return cache.read_bytes()

    packed = pack("packed")
    assert len(packed) > 200 * 300 * 4 and packed == pack("again")
    assert packed != pack("as_avx2", PYTHONPATH=str(copy))


def test_libraries_that_are_not_understood_are_refused(tmp_path, monkeypatch):
    from litert_avx2 import copy_litert
    from measurements import BenchmarkError

    package = tmp_path / "site" / "ai_edge_litert"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "libLiteRt.so").write_bytes(b"nothing")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, "ai_edge_litert", raising=False)
    with pytest.raises(BenchmarkError, match="no library in it looks for AVX-512"):
        copy_litert(tmp_path / "copy")
    assert not [*(tmp_path / "copy").iterdir()]
