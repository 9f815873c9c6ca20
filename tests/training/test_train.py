"""`train` leaves a whole run, and what is interrupted ends as if it had never been."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys

import keras
import numpy as np
import pytest
import rich.console

from keras_transformer.run import Run
from keras_transformer.training.checkpoint import Checkpoints
from keras_transformer.training.settings import SettingsError, load_settings
from keras_transformer.training.train import train

UPDATES = 11

CONFIG = """
[model]
preset = "tiny"
num_layers = 1
d_model = 16
d_ff = 24
num_heads = 2
dropout = 0.2
attention_dropout = 0.1
max_length = 20

[data]
source = "text"
train_source = "train.src"
train_target = "train.tgt"
validation_source = "validation.src"
validation_target = "validation.tgt"
max_length = 14
batch_tokens = 60

[vocabulary]
size = 15

[schedule]
warmup_steps = 1
peak = 0.01

[training]
updates = 11
validate_every = 6
validate_sentences = 0
checkpoint_every = 2
log_every = 3
progress_seconds = 0.0001
"""


def write_pairs(folder, split, count, seed):
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, 10, rng.integers(1, 6)) for _ in range(count)]
    for side, order in (("src", 1), ("tgt", -1)):
        lines = ["".join(map(str, row[::order])) for row in rows]
        (folder / f"{split}.{side}").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """40 training pairs, so that 11 updates are more than two epochs."""
    folder = tmp_path_factory.mktemp("corpus")
    write_pairs(folder, "train", 40, seed=1)
    write_pairs(folder, "validation", 7, seed=2)
    (folder / "config.toml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def settings(corpus):
    return load_settings(corpus / "config.toml")


class At(keras.callbacks.Callback):
    """Does something after the update of that number in this call."""

    def __init__(self, number, action):
        super().__init__()
        self.number, self.action = number, action

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == self.number:
            self.action()


def run_quietly(settings, folder, callbacks=()):
    text = io.StringIO()
    console = rich.console.Console(file=text, width=40)
    try:
        return train(settings, folder, console=console, callbacks=callbacks), text.getvalue()
    except KeyboardInterrupt:
        return None, text.getvalue()


@pytest.fixture(scope="module")
def finished(settings, tmp_path_factory):
    """A run that was never interrupted: its folder, what `train` returned and what it showed."""
    folder = tmp_path_factory.mktemp("finished") / "new" / "run"
    return folder, *run_quietly(settings, folder)


@pytest.fixture(scope="module")
def stopped(settings, tmp_path_factory):
    """A run that got Ctrl-C in update 5: its folder, and what it showed."""
    folder = tmp_path_factory.mktemp("stopped")
    press = At(5, lambda: os.kill(os.getpid(), signal.SIGINT))
    figures, shown = run_quietly(settings, folder, [press])
    assert figures is None
    return folder, shown


def assert_same_end(folder, finished):
    """Every weight, of the model and of the optimizer, is bit for bit that of `finished`."""
    ours, theirs = Run(folder), Run(finished[0])
    for one, two in zip(ours.load_model().weights, theirs.load_model().weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), two.numpy(), err_msg=one.path)
    last = [Checkpoints(run.checkpoints).paths()[-1] for run in (ours, theirs)]
    first, second = (np.load(path) for path in last)
    # "state", the last one, tells the time. Seeds of dropout have another name in every process.
    for one, two in zip(first.files[:-1], second.files[:-1], strict=True):
        np.testing.assert_array_equal(first[one], second[two], err_msg=one)
    one, two = (json.loads(run.metrics.read_text()) for run in (ours, theirs))
    assert {**one, "train_seconds": 0} == {**two, "train_seconds": 0}


def test_a_run_explains_itself(finished, settings):
    folder, figures, shown = finished
    run = Run(folder)
    assert load_settings(run.config) == settings
    assert run.load_tokenizer().vocab_size == 15
    model = run.load_model()
    assert model.config.num_layers == 1
    assert figures == json.loads(run.metrics.read_text())
    assert figures["parameters"] == model.count_params()
    assert figures["updates"] == UPDATES
    assert figures["train_seconds"] > 0
    assert set(figures["validation"]) == {"loss", "perplexity", "token_accuracy"}
    assert [path.name for path in Checkpoints(run.checkpoints).paths()] == [
        "update-00000008.npz",
        "update-00000010.npz",
        "update-00000011.npz",
    ]
    assert any("tfevents" in path.name for path in run.logs.iterdir())
    assert not list(folder.rglob(".*")), "a temporary file is left"
    assert f"update {UPDATES} of {UPDATES}  loss " in shown
    assert shown.count("validation after update") == 2


def test_tokens_seen_are_counted_over_epochs(finished, corpus):
    # One piece begins a line (the space before it), every digit is one, and one ends it.
    figures, seen = finished[1], json.loads(Run(finished[0]).metrics.read_text())["tokens_seen"]
    lines = (corpus / "train.tgt").read_text().split()
    per_epoch = sum(len(line) + 2 for line in lines)
    assert figures["tokens_seen"] == seen
    assert 2 * per_epoch < seen < 5 * per_epoch


def test_a_finished_run_is_left_alone(finished, settings):
    folder, figures, _ = finished
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    again, shown = run_quietly(settings, folder)
    assert again == figures
    assert shown == f"{folder} is finished: all 11 updates are done.\n"
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_ctrl_c_saves_and_says_how_to_go_on(stopped):
    folder, shown = stopped
    assert "Stopped after update 5 of 11; everything is saved. The same command continues" in shown
    assert Checkpoints(Run(folder).checkpoints).paths()[-1].name == "update-00000005.npz"
    assert not Run(folder).model.exists()
    assert not Run(folder).metrics.exists()


def test_a_stopped_run_ends_like_one_that_was_not(stopped, finished, settings, tmp_path):
    folder = shutil.copytree(stopped[0], tmp_path / "run")
    _, shown = run_quietly(settings, folder)
    assert "Continuing after update 5 of 11." in shown
    assert_same_end(folder, finished)


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(
    stopped, finished, settings, tmp_path
):
    folder = shutil.copytree(stopped[0], tmp_path / "run")
    newest = Checkpoints(Run(folder).checkpoints).paths()[-1]
    newest.write_bytes(newest.read_bytes()[:-1000])
    _, shown = run_quietly(settings, folder)
    assert f"{newest} is damaged (" in shown
    assert "Continuing after update 4 of 11." in shown
    assert_same_end(folder, finished)


KILLED = """
import os, signal, sys
import keras
from keras_transformer.training.settings import load_settings
from keras_transformer.training.train import train

class Kill(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == 9:
            os.kill(os.getpid(), signal.SIGKILL)

train(load_settings(sys.argv[1]), sys.argv[2], callbacks=[Kill()])
"""


def test_a_killed_process_costs_only_what_was_not_saved(corpus, finished, settings, tmp_path):
    command = [sys.executable, "-c", KILLED, str(corpus / "config.toml"), str(tmp_path / "run")]
    process = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert process.returncode == -signal.SIGKILL, process.stderr
    _, shown = run_quietly(settings, tmp_path / "run")
    assert "Continuing after update 8 of 11." in shown
    assert_same_end(tmp_path / "run", finished)


def test_a_run_with_other_settings_is_refused(stopped, corpus):
    other = load_settings(corpus / "config.toml", ["training.seed=9", "model.d_ff=25"])
    message = "begun with other settings: model.d_ff, training.seed changed. .*config.toml has"
    with pytest.raises(SettingsError, match=message):
        train(other, stopped[0])


def test_changed_data_is_refused(stopped, settings, corpus, tmp_path):
    folder = shutil.copytree(stopped[0], tmp_path / "run")
    source, target = corpus / "train.src", corpus / "train.tgt"
    before = source.read_text(), target.read_text()
    try:
        source.write_text("0\n" + before[0])
        target.write_text("0\n" + before[1])
        with pytest.raises(ValueError, match=r"has changed since .*: \[40, .* then, \[41, .* now"):
            run_quietly(settings, folder)
    finally:
        source.write_text(before[0])
        target.write_text(before[1])


def test_a_mistake_in_the_data_can_be_corrected_in_the_same_folder(corpus, tmp_path):
    wrong = load_settings(corpus / "config.toml", ["vocabulary.size=5000", "training.updates=2"])
    with pytest.raises(ValueError, match="`size` must be at most"):
        run_quietly(wrong, tmp_path)
    overrides = ["training.updates=1", "training.precision=mixed_bfloat16"]
    right = load_settings(corpus / "config.toml", [*overrides, "training.validate_sentences=3"])
    figures, shown = run_quietly(right, tmp_path)
    assert set(figures["validation"]) >= {"bleu", "exact_match"}
    assert "Learning a vocabulary of 15 pieces" in shown
    assert load_settings(Run(tmp_path).config) == right
