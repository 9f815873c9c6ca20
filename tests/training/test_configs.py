"""The paper's configurations build their models and take a step on artificial sentences."""

import io

import pytest
import rich.console
import tensorflow_datasets as tfds
from support import in_own_process

from keras_transformer import TransformerConfig
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.training_run import train

# Number of parameters without the vocabulary, computed by hand from section 3, and d_model: 6
# encoder layers of 4 d^2 + 2 d f + f + 5 d, and 6 decoder layers of 8 d^2 + 2 d f + f + 7 d. The
# table has each size and each language once: the test below shows that the others combine these.
NAMES = {"wmt14_en_de_base": (44_101_632, 512), "wmt14_en_fr_big": (176_283_648, 1024)}


@pytest.mark.parametrize("size", ["base", "big"])
def test_french_differs_from_german_only_in_its_data(size):
    """The big model also has another dropout: section 5.4 and Table 3."""
    german, french = (load_settings(f"wmt14_en_{code}_{size}").used() for code in ("de", "fr"))
    assert french["data"].pop("name") == "wmt14_translate/fr-en"
    assert german["data"].pop("name") == "wmt14_translate/de-en"
    assert (french["data"].pop("target_language"), german["data"].pop("target_language")) == (
        "fr",
        "de",
    )
    assert (french["vocabulary"].pop("size"), german["vocabulary"].pop("size")) == (32_000, 37_000)
    assert french["model"].pop("dropout", None) == (0.1 if size == "big" else None)
    assert french == german


@pytest.mark.long
@pytest.mark.slow
def test_a_configuration_of_the_paper_takes_a_step(tmp_path, name="wmt14_en_de_base"):
    metrics = in_own_process(step, name, tmp_path / "run")
    assert metrics["updates"] == 1
    layers, d_model = NAMES[name]
    assert metrics["parameters"] == layers // 6 + 60 * d_model
    assert 0 < metrics["validation"]["loss"] < 10


def step(name, run):
    """Takes a step with one layer of six and returns the metrics; all layers would take 4 GB."""
    preset = load_settings(name).model.preset
    assert TransformerConfig.preset(preset, vocab_size=60).num_layers == 6
    small = [
        "model.num_layers=1",
        "data.batch_tokens=300",
        "vocabulary.size=60",
        "training.accumulate=2",
    ]
    short = [
        "training.updates=1",
        "schedule.warmup_steps=1",
        "schedule.scale=0.01",  # otherwise the first update would be as large as the 4,000th
        "training.validate_sentences=0",
        "training.precision=float32",
    ]
    settings = load_settings(name, [*small, *short])
    policy = tfds.testing.MockPolicy.USE_CODE
    console = rich.console.Console(file=io.StringIO())
    with tfds.testing.mock_data(num_examples=20, policy=policy):
        return train(settings, run, console=console)
