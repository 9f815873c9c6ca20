"""Outputs of training besides the last weights: an average, the best weights, the curves."""

import csv
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from small_runs import At, run_quietly, write_small_corpus
from support import with_tests_on_path

from keras_transformer.files import sync
from keras_transformer.installation import install_hint
from keras_transformer.tasks.run import Run
from keras_transformer.training.loop.checkpoint import Checkpoints
from keras_transformer.training.loop.messages import not_learned
from keras_transformer.training.settings.toml import load_settings, save_settings

MOMENTUM = 0.7


@pytest.fixture(scope="module")
def configured(tmp_path_factory):
    """A function from changes to the settings of a small training run."""
    folder = tmp_path_factory.mktemp("corpus")
    write_small_corpus(folder)

    def settings(**changes):
        changes = {"updates": 6, "validate_every": 3, "checkpoint_every": 1, **changes}
        overrides = [
            f"{key if '__' in key else 'training__' + key}={json.dumps(value)}".replace("__", ".")
            for key, value in changes.items()
        ]
        return load_settings(folder / "config.toml", overrides)

    return settings


def archives(folder):
    """Returns the arrays of every checkpoint of a run, by its number."""
    paths = sorted(Run(folder).checkpoints.glob("update-*.npz"))
    return {int(path.stem.split("-")[1]): dict(np.load(path)) for path in paths}


def trained(arrays):
    """Returns the weights among the arrays of a checkpoint, by path."""
    return {
        key.split("/", 1)[1]: value
        for key, value in arrays.items()
        if key != "state" and not any(word in key for word in ("/adam", "learner/", "seed_"))
    }


def model_weights(folder):
    return {weight.path: weight.numpy() for weight in Run(folder).load_model().weights}


def assert_equal(ours, theirs, **tolerance):
    assert ours.keys() == theirs.keys() and len(ours) > 20
    for path in ours:
        if tolerance:
            np.testing.assert_allclose(ours[path], theirs[path], **tolerance, err_msg=path)
        else:
            np.testing.assert_array_equal(ours[path], theirs[path], err_msg=path)


def table(folder):
    with open(Run(folder).history, newline="") as file:
        return list(csv.DictReader(file))


def press_ctrl_c(number):
    return At(number, lambda: os.kill(os.getpid(), signal.SIGINT))


@pytest.fixture(scope="module")
def ema_settings(configured):
    return configured(keep_checkpoints=9, optimizer__ema_momentum=MOMENTUM)


@pytest.fixture(scope="module")
def averaged(ema_settings, tmp_path_factory):
    """A run with a moving average: its folder and its metrics."""
    folder = tmp_path_factory.mktemp("averaged") / "run"
    return folder, run_quietly(ema_settings, folder)[0]


@pytest.mark.long
@pytest.mark.slow
def test_a_moving_average_does_not_change_the_trained_weights(averaged, configured, tmp_path):
    run_quietly(configured(keep_checkpoints=9), tmp_path)
    ours, theirs = archives(averaged[0]), archives(tmp_path)
    assert list(ours) == list(theirs) == [1, 2, 3, 4, 5, 6]
    for update in ours:
        assert_equal(trained(ours[update]), trained(theirs[update]))


@pytest.mark.slow
def test_the_model_and_its_validation_use_the_moving_average(averaged):
    folder, figures = averaged
    first, *others = [trained(arrays) for arrays in archives(folder).values()]
    average = {path: value.astype("float64") for path, value in first.items()}
    for weights in others:
        for path in average:
            average[path] = MOMENTUM * average[path] + (1 - MOMENTUM) * weights[path]
    assert_equal(model_weights(folder), average, rtol=0, atol=1e-6)
    last = max(np.abs(average[path] - others[-1][path]).max() for path in average)
    assert last > 1e-3, "the average is the last model: the test would show nothing"
    assert figures["validation"]["perplexity"] == pytest.approx(perplexity(folder), rel=1e-5)


def perplexity(folder):
    """Returns the perplexity of the run's model on its validation split, in float64."""
    run = Run(folder)
    model, (_, tokenizer) = run.load_model(), run.load_tokenizers()
    data = load_settings(run.config).data
    sides = [Path(name).read_text() for name in (data.validation_source, data.validation_target)]
    losses = []
    for source, target in zip(*map(str.split, sides), strict=True):
        source, labels = (tokenizer.encode([text])[0].numpy().tolist() for text in (source, target))
        inputs = {"source": [source], "target": [[tokenizer.bos_id, *labels[:-1]]]}
        inputs = {name: np.array(tokens, "int32") for name, tokens in inputs.items()}
        logits = np.asarray(model(inputs)[0], "float64")
        shifted = logits - logits.max(axis=-1, keepdims=True)
        normal = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        losses += [-row[label] for row, label in zip(normal, labels, strict=True)]
    return np.exp(np.mean(losses))


@pytest.mark.long
@pytest.mark.slow
def test_a_moving_average_is_the_same_after_an_interruption(averaged, ema_settings, tmp_path):
    assert run_quietly(ema_settings, tmp_path, [press_ctrl_c(4)])[0] is None
    figures, _ = run_quietly(ema_settings, tmp_path)
    assert {**figures, "train_seconds": 0} == {**averaged[1], "train_seconds": 0}
    assert_equal(model_weights(tmp_path), model_weights(averaged[0]))
    assert_equal(trained(archives(tmp_path)[6]), trained(archives(averaged[0])[6]))


@pytest.mark.long
@pytest.mark.slow
def test_the_best_model_is_kept_and_may_be_the_final_one(configured, tmp_path, final_model="last"):
    settings = configured(
        validate_every=1, keep_checkpoints=1, best_by="perplexity", final_model=final_model,
        schedule__peak=1.0, schedule__warmup_steps=4, optimizer__ema_momentum=0.001,
    )  # fmt: skip
    figures, shown = run_quietly(settings, tmp_path)
    rows = table(tmp_path)
    best = min(rows, key=lambda row: float(row["validation/perplexity"]))
    best_update = int(best["update"])
    assert 1 <= best_update < 6, "the rate must be so high that the model gets worse"
    kept = archives(tmp_path)
    assert list(kept) == [best_update, 6]
    update = best_update if final_model == "best" else 6
    assert (figures["best_update"], figures["model_update"]) == (best_update, update)
    assert (figures["updates"], figures["stopped_early"]) == (6, False)
    row = rows[update - 1]
    assert figures["validation"]["perplexity"] == float(row["validation/perplexity"])
    assert f"from update {update}." in shown
    # A thousandth of the average comes from earlier updates.
    assert_equal(model_weights(tmp_path), trained(kept[update]), rtol=0, atol=2e-3)
    assert perplexity(tmp_path) == pytest.approx(float(row["validation/perplexity"]), rel=1e-4)


@pytest.fixture(scope="module")
def patient(configured):
    """Settings with which nothing is learned, so the perplexity stays constant."""
    return configured(
        updates=50, validate_every=2, validate_sentences=3, checkpoint_every=5,
        best_by="perplexity", patience=2, schedule__peak=1e-30,
    )  # fmt: skip


@pytest.fixture(scope="module")
def stopped_early(patient, tmp_path_factory):
    folder = tmp_path_factory.mktemp("early")
    return folder, *run_quietly(patient, folder)


@pytest.mark.long
@pytest.mark.slow
def test_training_stops_if_nothing_improves(stopped_early, patient):
    folder, figures, shown = stopped_early
    assert (figures["updates"], figures["stopped_early"]) == (6, True)
    assert (figures["best_update"], figures["model_update"]) == (2, 6)
    message = "Stopped early after update 6 of 50: perplexity has not improved since update 2, 2 "
    assert message + "validations in a row." in shown
    assert list(archives(folder)) == [2, 5, 6]
    before = Run(folder).model.read_bytes()
    again, shown = run_quietly(patient, folder)
    assert again == figures
    assert shown == (
        f"{folder} is finished: it stopped early after update 6 of 50; it "
        "resumes with a larger `training.patience`.\n"
    )
    assert Run(folder).model.read_bytes() == before


@pytest.mark.long
@pytest.mark.slow
def test_a_resumed_training_stops_at_the_same_update(stopped_early, patient, tmp_path):
    assert run_quietly(patient, tmp_path, [press_ctrl_c(5)])[0] is None
    figures, _ = run_quietly(patient, tmp_path)
    assert {**figures, "train_seconds": 0} == {**stopped_early[1], "train_seconds": 0}
    assert_equal(model_weights(tmp_path), model_weights(stopped_early[0]))


@pytest.mark.slow
def test_a_process_killed_before_writing_the_model_only_writes_it(stopped_early, patient, tmp_path):
    folder = shutil.copytree(stopped_early[0], tmp_path / "run")
    for name in ("model.keras", "metrics.json"):
        (folder / name).unlink()
    figures, shown = run_quietly(patient, folder)
    assert figures == stopped_early[1]
    assert "validation" not in shown
    assert table(folder) == table(stopped_early[0])


@pytest.mark.slow
def test_a_missing_best_checkpoint_is_not_needed(stopped_early, patient, tmp_path):
    """As after damage: the checkpoint that replaced it is unreadable, and it is deleted."""
    folder = shutil.copytree(stopped_early[0], tmp_path / "run")
    for name in ("model.keras", "metrics.json", "checkpoints/update-00000002.npz"):
        (folder / name).unlink()
    figures, _ = run_quietly(patient, folder)
    assert figures == {**stopped_early[1], "best_update": None}


KILLED = """
import os, signal, sys
import grappler, keras
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.training_run import train

class Kill(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == 7:
            os.kill(os.getpid(), signal.SIGKILL)

train(load_settings(sys.argv[1]), sys.argv[2], callbacks=[Kill()])
"""


@pytest.mark.long
@pytest.mark.slow
def test_the_history_grows_row_by_row_after_a_kill(configured, tmp_path):
    settings = configured(updates=8, checkpoint_every=4, log_every=1)
    config = tmp_path / "config.toml"
    save_settings(settings, config)
    command = [sys.executable, "-c", KILLED, str(config), str(tmp_path / "run")]
    process = subprocess.run(
        command, capture_output=True, text=True, timeout=240, env=with_tests_on_path()
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    killed = table(tmp_path / "run")
    assert [int(row["update"]) for row in killed] == [1, 2, 3, 4, 5, 6]  # also after checkpoint 4
    _, shown = run_quietly(settings, tmp_path / "run")
    assert "Resuming after update 4 of 8." in shown
    rows = table(tmp_path / "run")
    assert [int(row["update"]) for row in rows] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert rows[:6] == killed, "the same updates were measured once more"
    assert [row["update"] for row in rows if row["validation/loss"]] == ["3", "6", "8"]
    assert Run(tmp_path / "run").curve.read_bytes().startswith(b"\x89PNG")


class Break(At):
    """Sets one weight to NaN after a given update of this call."""

    def __init__(self, number):
        super().__init__(number, self.damage)

    def damage(self):
        weight = self.model.trainable_weights[3]
        weight.assign(np.full(weight.shape, np.nan))


@pytest.mark.long
@pytest.mark.slow
def test_a_diverged_training_names_the_checkpoint_on_disk(
    configured,
    tmp_path,
    number=4,
    what=r"\S+ is no longer finite after update 4",
    good="is .*update-00000002.npz;",
):
    settings = configured(checkpoint_every=2)
    with pytest.raises(ValueError, match=rf"^{what}. The last good checkpoint {good}") as error:
        run_quietly(settings, tmp_path, [Break(number)])
    assert "\n" not in str(error.value)
    assert list(archives(tmp_path)) == [2]
    assert all(np.isfinite(value).all() for value in trained(archives(tmp_path)[2]).values())


@pytest.mark.long
@pytest.mark.slow
def test_a_training_that_diverges_at_once_has_no_checkpoint(configured, tmp_path):
    with pytest.raises(ValueError, match="after update 1. There is no checkpoint to resume from"):
        run_quietly(configured(), tmp_path, [Break(1)])


@pytest.mark.long
@pytest.mark.slow
def test_a_loss_that_has_exploded_is_a_warning_and_valid_json(configured, tmp_path):
    settings = configured(schedule__peak=1e5, log_every=2)
    first = At(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    assert run_quietly(settings, tmp_path / "run", [first])[0] is None
    metrics, text = run_quietly(settings, tmp_path / "run")  # the first loss is in the checkpoint
    assert "Warning: the training loss ended at " in text and "the model has not learned" in text
    content = Run(tmp_path / "run").metrics.read_text()
    assert "Infinity" not in content and "NaN" not in content
    assert metrics == json.loads(content) and metrics["validation"]["perplexity"] is None


@pytest.mark.parametrize(
    ("first", "last", "warned"), [(5.0, 5.1, True), (5.0, 4.9, False), (None, 4.9, False)]
)
def test_a_loss_above_the_first_one_is_a_warning(first, last, warned):
    text = not_learned(types.SimpleNamespace(first_loss=first, last_loss=last))
    assert text == (
        "Warning: the training loss ended at 5.1, above that of the first update, 5: the model "
        "has not learned. A lower learning rate or clipping (schedule.peak, schedule.scale, "
        "optimizer.clip_norm) may help."
        if warned
        else ""
    )


@pytest.mark.long
@pytest.mark.slow
def test_the_same_pairs_in_another_order_are_other_data(tmp_path):
    """A resumed run would otherwise see some pairs twice in an epoch and others never."""
    write_small_corpus(tmp_path)
    settings = load_settings(tmp_path / "config.toml", ["training.updates=6"])
    assert run_quietly(settings, tmp_path / "run", [press_ctrl_c(2)])[0] is None
    for side in ("src", "tgt"):
        path = tmp_path / f"train.{side}"
        path.write_text("\n".join(reversed(path.read_text().splitlines())) + "\n")
    with pytest.raises(ValueError, match="have changed since training began: .*checksum"):
        run_quietly(settings, tmp_path / "run")


@pytest.mark.long
@pytest.mark.slow
def test_the_command_ends_with_the_error(configured, tmp_path):
    """The process must not wait for tf.data, which still prefetches."""
    config, run = tmp_path / "config.toml", tmp_path / "run"
    save_settings(configured(schedule__peak=1e38, updates=50), config)
    process = subprocess.run(
        [sys.executable, "-m", "keras_transformer", "train", config, "--output", run],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1].startswith("Error: the loss is nan at update 2.")


@pytest.mark.long
@pytest.mark.slow
def test_a_full_disk_is_reported_in_one_line_and_training_resumes(
    configured, tmp_path, monkeypatch
):
    def full(path):
        if "update-00000004" in path.name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(path)

    settings = configured(checkpoint_every=2)
    with monkeypatch.context() as patch:
        patch.setattr("keras_transformer.files.sync", full)
        with pytest.raises(OSError) as error:
            run_quietly(settings, tmp_path)
    folder = Checkpoints(Run(tmp_path).checkpoints)
    assert str(error.value) == (
        f"{folder.path(4)} cannot be written: No space left on device. "
        f"The last good checkpoint is {folder.path(2)}."
    )
    assert [path.name for path in folder.directory.iterdir()] == ["update-00000002.npz"]
    figures, shown = run_quietly(settings, tmp_path)
    assert "Resuming after update 2 of 6." in shown
    assert figures["updates"] == 6


@pytest.mark.long
@pytest.mark.slow
def test_without_matplotlib_one_line_says_so(configured, tmp_path, monkeypatch):
    for name in ("matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    figures, shown = run_quietly(configured(updates=2, validate_every=1), tmp_path)
    assert figures["updates"] == 2
    lines = [line for line in shown.splitlines() if "curve.png" in line]
    assert len(lines) == 1 and install_hint("plot") in lines[0]
    assert not Run(tmp_path).curve.exists()
