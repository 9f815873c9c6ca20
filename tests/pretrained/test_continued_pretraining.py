"""Masked language models that are trained further, from converted checkpoints."""

import pytest
from bert_folders import WORDS, write_folder
from masked_heads import write_folder as write_masked
from small_runs import run_quietly

from keras_transformer.pipelines import MaskFiller
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.training.converted import write_converted
from keras_transformer.training.evaluate import evaluate_files
from keras_transformer.training.settings.toml import load_settings

CONFIG = """
[task]
kind = "masked_language_modelling"
[model]
{model}
[data]
source = "text"
train = "train.txt"
validation = "train.txt"
max_length = 20
batch_tokens = 400
[schedule]
kind = "linear"
warmup_steps = 1
peak = 0.003
[training]
label_smoothing = 0.0
updates = {updates}
validate_every = {updates}
checkpoint_every = {updates}
"""


def write_config(folder, lines, updates, **model):
    (folder / "train.txt").write_text("".join(lines))
    keys = "\n".join(f"{key} = {value}" for key, value in model.items())
    (folder / "c.toml").write_text(CONFIG.format(model=keys, updates=updates))
    return folder / "c.toml"


@pytest.mark.long
@pytest.mark.slow
def test_a_converted_checkpoint_is_trained_further(tmp_path):
    write_masked(tmp_path / "hf", "bert")
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run").path
    options = {"start_from": f'"{run}"', "masking_rate": 0.3, "whole_word_masking": "true"}
    lines = [f"a {word} film is {word}\n" for word in WORDS[:8] for _ in range(4)]
    config = write_config(tmp_path, lines, 40, **options)
    few = [f"training.{key}=2" for key in ("updates", "validate_every", "checkpoint_every")]
    few = load_settings(config, [*few, "schedule.peak=1e-9"])
    before, _ = run_quietly(few, tmp_path / "same")
    figures, shown = run_quietly(load_settings(config), tmp_path / "tuned")
    assert f"Starting with the weights of {run}." in shown
    assert figures["validation"]["loss"] < before["validation"]["loss"] / 2
    tuned = MaskFiller.from_run(tmp_path / "tuned")
    assert tuned.model.config.head.whole_word_masking
    assert tuned.model.config.head.masking_rate == 0.3 and tuned.source_tokenizer.mask == "[MASK]"
    results = evaluate_files(run, tmp_path / "train.txt")  # with the rate of the checkpoint
    assert results["tokens"] == len(lines)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "masked", [True, pytest.param(False, marks=pytest.mark.long)], ids=["to", "from"]
)
def test_an_encoder_moves_between_masked_words_and_labels(masked, tmp_path):
    """The mask of a checkpoint is in its vocabulary, whatever its head is."""
    write_folder(tmp_path / "hf") if masked else write_masked(tmp_path / "hf", "bert")
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run").path
    lines = ["a dog\n"] if masked else ["a dog\tx\n", "the film\ty\n"] * 8
    parts = {"start_from": f'"{run}"', "parts": '["input", "encoder"]'}
    config = write_config(tmp_path, lines, 2, **parts)
    kind = [] if masked else ["task.kind=classification"]
    _, shown = run_quietly(load_settings(config, kind), tmp_path / "tuned")
    assert "New parts: head" in " ".join(shown.split())
