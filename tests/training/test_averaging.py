"""The average of a run's last checkpoints is a run like any other."""

import json
import re
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from small_runs import run_quietly

from keras_transformer.cli.main import cli
from keras_transformer.tasks.run import Run
from keras_transformer.training import averaging
from keras_transformer.training.averaging import average_checkpoints
from keras_transformer.training.loop import checkpoint
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.training_run import train


@pytest.fixture
def folder(six_updates, tmp_path):
    """A run with the checkpoints of updates 2, 4 and 6."""
    return shutil.copytree(six_updates.run, tmp_path / "run")


def mean_of_archives(folder, updates):
    """Returns the mean by path in float64, directly from the files."""
    files = [np.load(folder / "checkpoints" / f"update-{update:08d}.npz") for update in updates]
    return {
        key.split("/", 1)[1]: np.mean([file[key].astype("float64") for file in files], axis=0)
        for key in files[0].files
        if key != "state" and not any(word in key for word in ("/adam", "learner/", "seed_"))
    }


def test_the_weights_are_the_mean_of_the_archives(folder, last=3):
    before = Run(folder).model.read_bytes()
    output = average_checkpoints(folder, last)
    assert output == folder.with_name(f"run-average-{last}")
    expected = mean_of_archives(folder, [2, 4, 6][-last:])
    model = Run(output).load_model()
    assert {weight.path for weight in model.weights} == set(expected)
    for weight in model.weights:
        mean = expected[weight.path].astype("float32")
        np.testing.assert_array_equal(weight.numpy(), mean, err_msg=weight.path)
    metrics = json.loads(Run(output).metrics.read_text())
    assert metrics["averaged"] == [f"update-0000000{n}.npz" for n in (2, 4, 6)][-last:]
    assert metrics["averaged_run"] == str(folder)
    assert metrics["parameters"] == model.count_params()
    assert Run(folder).model.read_bytes() == before
    assert {path.name for path in folder.parent.iterdir()} == {"run", output.name}


def command(*arguments, data=None):
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments], input=data)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.long
@pytest.mark.slow
def test_the_new_run_is_used_like_any_other(folder, tmp_path):
    new = tmp_path / "new" / "average"
    assert command("average", folder, "--last", 2, "--output", new) == f"{new}\n"
    lines = tmp_path / "lines.txt"
    lines.write_text("12\n345\n")
    assert command("translate", new, data="12\n345\n").count("\n") == 2
    scores = json.loads(command("evaluate", new, "--source", lines, "--reference", lines))
    assert scores["sentences"] == 2
    report = command(
        "export", "saved-model", new, tmp_path / "served", "--sentences", lines, "--json"
    )
    assert json.loads(report)["agreement"] == 1
    assert json.loads(Run(new).metrics.read_text())["saved_model_agreement"] == 100


def test_an_unfinished_run_can_be_averaged_but_an_average_is_not_trained(folder):
    for name in ("model.keras", "metrics.json"):
        (folder / name).unlink()
    output = average_checkpoints(folder, 2)
    with pytest.raises(
        SettingsError, match=f"{output} is an average of checkpoints: train {folder} instead"
    ):
        train(load_settings(folder / "config.toml"), output)


def test_a_checkpoint_may_be_removed_while_the_run_is_trained(folder, monkeypatch):
    checkpoints = folder / "checkpoints"
    reads = []

    def read(path):
        if not reads:  # training saves the next one and removes the oldest
            shutil.copyfile(path, checkpoints / "update-00000008.npz")
            path.unlink()
        reads.append(path.name)
        return checkpoint.read(path)

    monkeypatch.setattr(averaging, "read", read)
    metrics = json.loads(Run(average_checkpoints(folder, 3)).metrics.read_text())
    assert metrics["averaged"] == [f"update-0000000{n}.npz" for n in (4, 6, 8)]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_ends_of_epochs_are_averaged(six_updates, tmp_path, accumulate):
    """The number of batches in an epoch is that of the run's own introduction."""
    overrides = ["training.checkpoint_epochs=1", "training.keep_checkpoints=9"]
    overrides.append(f"training.accumulate={accumulate}")
    text = six_updates.corpus / "config.toml"
    text = text.read_text().replace("checkpoint_every = 2", "").replace("updates = 11", "")
    config = six_updates.corpus / "epochs.toml"
    config.write_text(text)
    run = tmp_path / "run"
    settings = load_settings(config, [*overrides, "training.updates=2"])
    _, shown = run_quietly(settings, run)
    steps = int(re.search(r"(\d+) updates are an epoch", " ".join(shown.split()))[1])
    assert steps > 2
    updates = 2 * steps + 1
    run_quietly(load_settings(config, [*overrides, f"training.updates={updates}"]), run)
    names = [path.stem for path in sorted((run / "checkpoints").iterdir())]
    saved = [int(name.removeprefix("update-")) for name in names]
    assert saved[0] == 2 and saved[-1] == updates, "where the runs ended"
    if accumulate == 1:
        assert saved[1:-1] == [steps, 2 * steps]
    else:  # an epoch may end after the first half of an update
        assert len(saved) == 4 and saved[1] == steps and saved[2] in (2 * steps - 1, 2 * steps)
    with pytest.raises(ValueError, match="run has 4 of the 10 checkpoints to average. Training w"):
        average_checkpoints(run, 10)


def test_a_checkpoint_kept_only_as_the_best_is_not_among_the_last(folder):
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("keep_checkpoints = 9", "keep_checkpoints = 3"))
    checkpoints = folder / "checkpoints"
    shutil.copyfile(checkpoints / "update-00000002.npz", checkpoints / "update-00000001.npz")
    with pytest.raises(ValueError, match="run has 3 of the 4 checkpoints to average. Training w"):
        average_checkpoints(folder, 4)


def refused(folder, *arguments, code=1):
    done = CliRunner().invoke(cli, ["average", str(folder), *map(str, arguments)])
    assert done.exit_code == code
    assert done.stdout == ""
    lines = done.stderr.strip().split("\n")
    assert len(lines) == 1
    return lines[0]


@pytest.mark.slow
def test_mistakes_are_reported_in_one_line_and_leave_no_file(folder, tmp_path):
    known = sorted(tmp_path.rglob("*"))
    line = refused(folder)
    assert f"{folder} has 3 of the 5 checkpoints to average. Training writes" in line
    line = refused(folder, "--last", 2, "--output", folder, code=2)
    assert f"--output {folder} is the same as RUN {folder}, which would be replaced" in line
    other = folder / "checkpoints"
    line = refused(folder, "--last", 2, "--output", other)
    assert f"{other} exists already: name another folder" in line
    assert "nowhere is not a finished run" in refused(tmp_path / "nowhere")
    damaged = folder / "checkpoints" / "update-00000004.npz"
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1000])
    line = refused(folder, "--last", 3)
    assert f"{damaged} is damaged (" in line and "nothing was averaged" in line
    damaged.write_bytes(content)
    assert sorted(tmp_path.rglob("*")) == known
    with pytest.raises(ValueError, match="`last` must be positive. Received: last=0."):
        average_checkpoints(folder, 0)


@pytest.mark.parametrize("size", [0, 2_000, 20_000])
def test_a_full_disk_is_reported_with_the_run_that_cannot_be_written(folder, full_disk, size):
    """While writing the settings, the vocabulary, or the weights."""
    output = folder.with_name("mean")
    with full_disk(size):
        line = refused(folder, "--last", 2, "--output", output)
    assert line == f"Error: {output} cannot be written: File too large."
    assert [path.name for path in folder.parent.iterdir()] == ["run"]


def test_another_models_checkpoints_are_refused(folder):
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("d_ff = 24", "d_ff = 23"))
    with pytest.raises(ValueError, match="update-00000004.npz belongs to another model: .*inner/k"):
        average_checkpoints(folder, 2)
