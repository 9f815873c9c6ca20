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
from searching import by_greedy
from support import sentences, small_config, to_numpy

import keras_transformer as kt
from keras_transformer.checks import BackendError
from keras_transformer.tasks.translation.pipeline import Translator
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.losses.metrics import TokenAccuracy
from keras_transformer.training.training_run import train

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


NEED_TENSORFLOW = {
    "searches": lambda model: by_greedy(model, sentences([5]), 3),
    "pipelines and exports": lambda model: Translator(model, None),
    "runs and their training": lambda model: train(None, "run"),
    "the losses and metrics": lambda model: LabelSmoothedCrossEntropy(),
    "losses and metrics of this package": lambda model: TokenAccuracy(),
}


@pytest.mark.parametrize("what", NEED_TENSORFLOW)
def test_what_needs_tensorflow_says_so_in_one_line(what, monkeypatch):
    model = kt.Transformer(small_config())
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(BackendError, match=f"{what}.* need TensorFlow.*work on jax") as caught:
        NEED_TENSORFLOW[what](model)
    assert "\n" not in str(caught.value)


def test_a_search_says_how_to_copy_a_model():
    model = kt.Transformer(small_config())
    clone = keras.models.clone_model(model)
    with pytest.raises(TypeError, match=r"type Functional.*`copy = type\(model\)\.from_config"):
        by_greedy(clone, sentences([5]), 3)
    copy = type(model).from_config(model.get_config())
    copy.set_weights(model.get_weights())
    expected = by_greedy(model, sentences([5]), 3)
    np.testing.assert_array_equal(by_greedy(copy, sentences([5]), 3)[0], expected[0])
