"""`train` leaves a complete run, and a resumed run ends like an uninterrupted one."""

import json
import os
import pkgutil
import shutil
import signal
import subprocess
import sys

import pytest
import rich.console
from mixer_rows import MIXERS, stacks_with
from small_runs import At, assert_same_end, run_quietly, write_small_corpus
from support import with_tests_on_path

from keras_transformer import files as atomic
from keras_transformer.lock import FolderLocked
from keras_transformer.tasks.run import Run
from keras_transformer.training.averaging import average_checkpoints
from keras_transformer.training.loop import final
from keras_transformer.training.loop.checkpoint import Checkpoints
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.training_run import train

UPDATES = 11


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """40 training pairs, so that 11 updates are more than two epochs."""
    folder = tmp_path_factory.mktemp("corpus")
    write_small_corpus(folder)
    return folder


@pytest.fixture(scope="module")
def settings(corpus):
    return load_settings(corpus / "config.toml")


@pytest.fixture(scope="module")
def finished(settings, tmp_path_factory):
    """An uninterrupted run: its folder, the result of `train`, and the messages."""
    folder = tmp_path_factory.mktemp("finished") / "new" / "run"
    return folder, *run_quietly(settings, folder)


@pytest.fixture(scope="module")
def stopped(settings, tmp_path_factory):
    """A run that got Ctrl-C in update 5: its folder and its messages."""
    folder = tmp_path_factory.mktemp("stopped")
    press = At(5, lambda: os.kill(os.getpid(), signal.SIGINT))
    figures, shown = run_quietly(settings, folder, [press])
    assert figures is None
    return folder, shown


def test_a_run_is_self_contained(finished, settings):
    folder, figures, shown = finished
    run = Run(folder)
    assert load_settings(run.config) == settings
    tokenizers = run.load_tokenizers()
    assert tokenizers.shared and tokenizers.source.vocab_size == 15
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
    # One token is the space before a line, every digit is a token, and one ends the line.
    figures, seen = finished[1], json.loads(Run(finished[0]).metrics.read_text())["tokens_seen"]
    lines = (corpus / "train.tgt").read_text().split()
    per_epoch = sum(len(line) + 2 for line in lines)
    assert figures["tokens_seen"] == seen
    assert 2 * per_epoch < seen < 5 * per_epoch


def test_a_finished_run_is_left_unchanged(finished, settings):
    folder, figures, _ = finished
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    again, shown = run_quietly(settings, folder)
    assert again == figures
    assert shown == f"{folder} is finished: all 11 updates are done.\n"
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.slow
def test_ctrl_c_saves_and_prints_how_to_resume(stopped):
    folder, shown = stopped
    assert "Stopped after update 5 of 11; everything is saved. The same command resumes" in shown
    assert Checkpoints(Run(folder).checkpoints).paths()[-1].name == "update-00000005.npz"
    assert not Run(folder).model.exists()
    assert not Run(folder).metrics.exists()


def test_a_resumed_run_ends_like_an_uninterrupted_one(stopped, finished, settings, tmp_path):
    folder = shutil.copytree(stopped[0], tmp_path / "run")
    _, shown = run_quietly(settings, folder)
    assert "Resuming after update 5 of 11." in shown
    assert_same_end(folder, finished)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("kind", MIXERS)
def test_a_resumed_run_with_a_mixer_ends_like_an_uninterrupted_one(kind, corpus, tmp_path):
    settings = load_settings(corpus / "config.toml", [f"model.{stacks_with(kind)}={kind}"])
    press = At(5, lambda: os.kill(os.getpid(), signal.SIGINT))
    assert run_quietly(settings, tmp_path / "stopped", [press])[0] is None
    finished = tmp_path / "whole", *run_quietly(settings, tmp_path / "whole")
    run_quietly(settings, tmp_path / "stopped")
    assert_same_end(tmp_path / "stopped", finished)


@pytest.mark.long
@pytest.mark.slow
def test_a_damaged_checkpoint_is_reported_and_the_previous_one_is_used(
    stopped, finished, settings, tmp_path
):
    folder = shutil.copytree(stopped[0], tmp_path / "run")
    newest = Checkpoints(Run(folder).checkpoints).paths()[-1]
    newest.write_bytes(newest.read_bytes()[:-1000])
    _, shown = run_quietly(settings, folder)
    assert f"{newest} is damaged (" in shown
    assert "Resuming after update 4 of 11." in shown
    assert_same_end(folder, finished)


STOPPED = """
import os, signal, sys
import grappler, keras
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.training_run import train

class Stop(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == 9:
            os.kill(os.getpid(), signal.SIGSTOP)

train(load_settings(sys.argv[1]), sys.argv[2], callbacks=[Stop()])
"""


def terminating(function):
    """Returns a function that gets SIGTERM before it does anything."""

    def wrapper(*arguments, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        return function(*arguments, **options)

    return wrapper


@pytest.mark.parametrize(
    ("phase", "left"),
    [
        ("training_run.open_source", set()),  # not even a folder
        ("data.store.StoreWriter.write", {"config.toml", "tokenizer.model", "store"}),
        ("inputs.strings", {"config.toml", "store"}),
        ("session.make_learner", {"config.toml", "tokenizer.model", "store"}),
    ],
)
def test_sigterm_before_the_first_update_leaves_no_lock_and_no_draft(
    settings, tmp_path, monkeypatch, phase, left
):
    target = f"keras_transformer.training.{phase}"
    module, _, name = target.rpartition(".")
    function = getattr(pkgutil.resolve_name(module.replace("store.S", "store:S")), name)
    if phase == "inputs.strings":  # read by SentencePiece, in C++

        def strings(*arguments):
            yield b"12"
            os.kill(os.getpid(), signal.SIGTERM)
            yield b"3"

        monkeypatch.setattr(target, strings)
    else:
        monkeypatch.setattr(target, terminating(function))
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt) as error:
        train(settings, tmp_path / "run", console=rich.console.Console(quiet=True))
    assert error.value.args == (signal.SIGTERM,)
    assert {path.name for path in tmp_path.glob("run/*")} == left
    assert not list(tmp_path.rglob("lock.json"))
    assert (tmp_path / "run").exists() == bool(left)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.long
@pytest.mark.slow
def test_sigterm_during_training_and_at_its_end(settings, corpus, finished, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    press = At(3, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt) as error:
        train(settings, folder, console=rich.console.Console(quiet=True), callbacks=[press])
    assert error.value.args == (signal.SIGTERM,)
    assert Checkpoints(Run(folder).checkpoints).paths()[-1].name == "update-00000003.npz"
    assert not Run(folder).model.exists() and not (folder / "lock.json").exists()
    with monkeypatch.context() as patch:
        sync = terminating(lambda path: None)
        ordinary = final._ordinary
        patch.setattr(final, "_ordinary", lambda model: patch.setattr(atomic, "sync", sync)
                      or ordinary(model))  # fmt: skip
        with pytest.raises(KeyboardInterrupt):
            train(settings, folder, console=rich.console.Console(quiet=True))
    assert not Run(folder).model.exists() and not list(folder.rglob(".*"))
    run_quietly(settings, folder)
    assert_same_end(folder, finished)


@pytest.mark.long
@pytest.mark.slow
def test_a_process_holds_the_folder_until_it_is_killed_and_loses_only_unsaved_updates(
    settings, corpus, finished, tmp_path
):
    command = [sys.executable, "-c", STOPPED, str(corpus / "config.toml"), str(tmp_path / "run")]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=with_tests_on_path()
    )
    try:
        assert os.waitpid(process.pid, os.WUNTRACED)[1] & 0xFF == 0x7F  # it stopped in update 9
        before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
        with pytest.raises(FolderLocked, match=f"in use by process {process.pid} "):
            train(settings, tmp_path / "run")
        after = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
        assert {**after, tmp_path / "run/.lock": 0} == {**before, tmp_path / "run/.lock": 0}
        assert average_checkpoints(tmp_path / "run", 2).is_dir()
    finally:
        process.kill()
        process.wait()
    own = atomic.draft_of(tmp_path / "run" / "checkpoints" / "update-00000009.npz")
    own.with_name(own.name.replace(f"-{os.getpid()}-", f"-{process.pid}-")).write_bytes(b"half")
    _, shown = run_quietly(settings, tmp_path / "run")
    assert "Resuming after update 8 of 11." in shown
    assert_same_end(tmp_path / "run", finished)
    assert not list((tmp_path / "run").glob("*lock*"))
    assert not list((tmp_path / "run").rglob(".*"))


def test_a_run_with_other_settings_is_refused(stopped, corpus):
    other = load_settings(corpus / "config.toml", ["training.seed=9", "model.d_ff=25"])
    message = r"settings: model.d_ff \(24, now 25\), training.seed \(1, now 9\) cannot change "
    with pytest.raises(SettingsError, match=message):
        train(other, stopped[0])


def test_changed_data_is_refused(stopped, settings, corpus, tmp_path):
    folder = shutil.copytree(stopped[0], tmp_path / "run")
    source, target = corpus / "train.src", corpus / "train.tgt"
    before = source.read_text(), target.read_text()
    try:
        source.write_text("0\n" + before[0])
        target.write_text("0\n" + before[1])
        with pytest.raises(ValueError, match=r"have changed since .*: \[40, .* then, \[41, .* now"):
            run_quietly(settings, folder)
    finally:
        source.write_text(before[0])
        target.write_text(before[1])


@pytest.mark.long
@pytest.mark.slow
def test_a_mistake_in_the_data_can_be_corrected_in_the_same_folder(corpus, tmp_path):
    wrong = load_settings(corpus / "config.toml", ["vocabulary.size=5000", "training.updates=2"])
    with pytest.raises(ValueError, match="`vocabulary.size` must be at most"):
        run_quietly(wrong, tmp_path)
    overrides = ["training.updates=1", "training.precision=mixed_bfloat16"]
    right = load_settings(corpus / "config.toml", [*overrides, "training.validate_sentences=3"])
    figures, shown = run_quietly(right, tmp_path)
    assert set(figures["validation"]) >= {"bleu", "exact_match"}
    assert "Learning a vocabulary of 15 tokens" in shown
    assert load_settings(Run(tmp_path).config) == right
