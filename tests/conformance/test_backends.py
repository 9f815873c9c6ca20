"""Every layer and model on the other backends of Keras, in a process of its own."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
from conformance.rows import ROWS, inputs_of, random_model
from support import to_numpy

TESTS = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("backends")
    outputs = {name: to_numpy(random_model(name)(inputs_of(name))) for name in ROWS}
    np.savez(folder / "expected.npz", **outputs)
    return folder


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_layers_and_models_compute_the_same_and_can_be_trained(backend, expected):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    paths = [str(TESTS), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    finished = subprocess.run(
        [sys.executable, TESTS / "conformance" / "other_backend.py", expected],
        env={
            **os.environ,
            "KERAS_BACKEND": backend,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        },
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr[-2000:]
    assert f"{len(ROWS)} of {len(ROWS)} rows" in finished.stdout
    assert keras.backend.backend() == "tensorflow"  # of this process
