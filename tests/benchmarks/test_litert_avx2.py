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
    assert "libLiteRt.so" in done.stdout and "libpywrap_litert_common.so" in done.stdout
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


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package `ai_edge_litert` with the library of one engine."""
    from litert_avx2 import READ_REGISTERS

    folder = tmp_path / "site" / "ai_edge_litert"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "libLiteRt.so").write_bytes(b"begin" + READ_REGISTERS + b"end")
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.delitem(sys.modules, "ai_edge_litert", raising=False)
    return folder


def test_every_engine_must_be_understood(package, tmp_path):
    from litert_avx2 import ONLY_AVX, copy_litert
    from measurements import BenchmarkError

    target = tmp_path / "copy"
    with pytest.raises(BenchmarkError, match="libpywrap_litert_common.so does not look for AVX-5"):
        copy_litert(target)
    assert not [*target.iterdir()]
    (package / "libpywrap_litert_common.so").write_bytes((package / "libLiteRt.so").read_bytes())
    for _ in range(2):  # the second time it replaces the copy
        assert copy_litert(target) == ["libLiteRt.so", "libpywrap_litert_common.so"]
        assert [path.name for path in target.iterdir()] == ["ai_edge_litert"]
    copied = (target / "ai_edge_litert" / "libLiteRt.so").read_bytes()
    assert copied == b"begin" + ONLY_AVX + b"end"


def test_the_installed_package_is_not_changed(package):
    from litert_avx2 import copy_litert
    from measurements import BenchmarkError

    before = (package / "libLiteRt.so").read_bytes()
    with pytest.raises(BenchmarkError, match="contains the LiteRT that is to be copied"):
        copy_litert(package.parent)
    assert (package / "libLiteRt.so").read_bytes() == before
