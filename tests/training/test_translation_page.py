"""The configuration in "Train your own" of docs/translation.md is valid and trains."""

import io

import numpy as np
import pytest
import rich.console
from documents import section

from keras_transformer.tasks.run import Run
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.training_run import train

WORDS = [
    "eins",
    "zwei",
    "drei",
    "vier",
    "sechs",
    "sieben",
    "neun",
    "zehn",
    "zwanzig",
    "hundert",
    "tausend",
    "million",
]


@pytest.fixture
def config(tmp_path):
    """The block of the page, next to tiny files with the names it uses."""
    block = section("docs/translation.md", "Train your own")
    rng = np.random.default_rng(3)
    for split, count in (("train", 200), ("val", 20)):
        rows = [rng.choice(WORDS, rng.integers(3, 9)) for _ in range(count)]
        for language, order in (("en", 1), ("de", -1)):
            lines = [" ".join(row[::order]) for row in rows]
            (tmp_path / f"{split}.{language}").write_text("\n".join(lines) + "\n")
    path = tmp_path / "config.toml"
    path.write_text(block, encoding="utf-8")
    return path


def test_the_configuration_is_valid_as_printed(config):
    settings = load_settings(config)
    assert settings.model.preset == "small" and settings.training.best_by == "bleu"
    data = open_source(settings.data)
    assert (data.count("train"), data.count("validation")) == (200, 20)


@pytest.mark.slow
@pytest.mark.long
def test_the_configuration_trains(config, tmp_path):
    short = ["training.updates=3", "schedule.warmup_steps=2", "vocabulary.size=40"]
    short += ["training.best_by=loss"]  # a BLEU of 0, which a new model has, is never the best
    small = ["model.num_layers=1", "training.validate_sentences=3", "training.precision=float32"]
    settings = load_settings(config, [*short, *small])
    console = rich.console.Console(file=io.StringIO())
    metrics = train(settings, tmp_path / "run", console=console)
    assert metrics["updates"] == metrics["model_update"] == metrics["best_update"] == 3
    assert set(metrics["validation"]) >= {"loss", "perplexity", "bleu"}
    assert Run(tmp_path / "run").model.exists()
