"""A finished training run that several files use."""

import types

import pytest
from small_runs import run_quietly, write_small_corpus

from keras_transformer.training.settings.toml import load_settings


@pytest.fixture(scope="session")
def six_updates(tmp_path_factory):
    """A run of six updates with the checkpoints 2, 4 and 6, and the folder of its corpus.

    No test writes to either: copy what you change.
    """
    folder = tmp_path_factory.mktemp("six")
    write_small_corpus(folder)
    settings = load_settings(
        folder / "config.toml", ["training.updates=6", "training.keep_checkpoints=9"]
    )
    run_quietly(settings, folder / "run")
    return types.SimpleNamespace(corpus=folder, run=folder / "run")
