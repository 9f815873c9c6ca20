"""The whole path on a task that only attention can solve: copy digits, or reverse them."""

import io

import numpy as np
import pytest
import rich.console

from keras_transformer import Translator
from keras_transformer.training.evaluate import evaluate_files
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.train import train

CONFIG = """
[model]
preset = "tiny"
num_layers = 1
d_model = 64
d_ff = 128
num_heads = 4
dropout = 0.0
max_length = 16

[data]
source = "text"
train_source = "train.source"
train_target = "train.target"
validation_source = "validation.source"
validation_target = "validation.target"
max_length = 16
batch_tokens = 512

[vocabulary]
size = 17

[schedule]
kind = "linear"
warmup_steps = 60
peak = 0.004

[training]
updates = 900
validate_every = 900
"""


def write_task(folder, split, count, seed):
    """ "c 7 1 4" becomes "7 1 4" and "r 7 1 4" becomes "4 1 7", for 1 to 6 digits."""
    rng = np.random.default_rng(seed)
    sources, targets = [], []
    for number in range(count):
        digits = rng.integers(0, 10, rng.integers(1, 7)).astype(str)
        order, step = (("c", 1), ("r", -1))[number % 2]
        sources.append(" ".join([order, *digits]))
        targets.append(" ".join(digits[::step]))
    for side, lines in (("source", sources), ("target", targets)):
        (folder / f"{split}.{side}").write_text("\n".join(lines) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize("decoder", ["self_attention", "ssru"])
def test_a_model_learns_to_copy_and_to_reverse(decoder, tmp_path):
    write_task(tmp_path, "train", 20_000, seed=0)
    write_task(tmp_path, "validation", 200, seed=1)
    write_task(tmp_path, "test", 200, seed=2)
    (tmp_path / "config.toml").write_text(CONFIG)
    changes = [f"model.decoder={decoder}"]
    if decoder == "ssru":
        changes.append("model.decoder_start=zeros")
    settings = load_settings(tmp_path / "config.toml", changes)
    console = rich.console.Console(file=io.StringIO())
    figures = train(settings, tmp_path / "run", console=console)
    assert figures["validation"]["token_accuracy"] > 0.99
    results = evaluate_files(tmp_path / "run", tmp_path / "test.source", tmp_path / "test.target")
    assert results["sentences"] == 200
    assert results["exact_match"] > 95
    translator = Translator.from_run(tmp_path / "run")
    assert translator(["r 3 1 4 1 5", "c 3 1 4 1 5", "c 0"]) == ["5 1 4 1 3", "3 1 4 1 5", "0"]
