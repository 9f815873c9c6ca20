"""A run can be resumed with changed settings unless they affect what it has learned."""

import csv
import json
import shutil

import pytest
from small_runs import assert_same_end, run_quietly

from keras_transformer.tasks.run import Run
from keras_transformer.training.changes import check_changes, describe_changes
from keras_transformer.training.loop.checkpoint import Checkpoints
from keras_transformer.training.settings.schema import Settings
from keras_transformer.training.settings.sources import data_kinds
from keras_transformer.training.settings.toml import SettingsError, load_settings, save_settings


@pytest.fixture(scope="module")
def configured(six_updates):
    """A function from overrides to the settings of a small training run."""
    return lambda *overrides: load_settings(six_updates.corpus / "config.toml", overrides)


@pytest.fixture
def folder(six_updates, tmp_path):
    return shutil.copytree(six_updates.run, tmp_path / "run")


def table(folder):
    with open(Run(folder).history, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.long
@pytest.mark.slow
def test_extending_a_finished_run_equals_a_longer_run(folder, configured, tmp_path):
    # A metric as `evaluate` writes it, of the model that will be replaced.
    Run(folder).update_metrics(bleu=12.0)
    settings = configured("training.updates=11")
    figures, shown = run_quietly(settings, folder)
    assert (
        "Resuming with changed settings: training.updates from 6 to 11, "
        "training.keep_checkpoints from 9 to 3.\nResuming after update 6 of 11.\n"
    ) in shown
    assert "learning rate" not in shown
    assert load_settings(Run(folder).config) == settings
    assert figures["updates"] == 11 and "bleu" not in figures
    whole = tmp_path / "whole"
    run_quietly(settings, whole)
    assert_same_end(folder, [whole])
    columns = [name for name in table(whole)[0] if name != "train/loss"]  # a mean since the restart
    assert [[row[name] for name in columns] for row in table(folder)] == [
        [row[name] for name in columns] for row in table(whole)
    ]
    assert run_quietly(settings, folder)[1] == f"{folder} is finished: all 11 updates are done.\n"


def begun(folder, settings, done=5):
    """Returns a run with only settings and the name of a checkpoint."""
    run = Run(folder)
    run.checkpoints.mkdir(parents=True)
    Checkpoints(run.checkpoints).path(done).write_bytes(b"")
    save_settings(settings, run.config)
    return run


def test_settings_that_must_stay_are_reported_key_by_key(configured, tmp_path):
    before = configured()
    run = begun(tmp_path / "run", before)
    changes = ["training.seed=9", "model.d_ff=25", "optimizer.clip_norm=1.0", "training.updates=20"]
    message = (
        r"started with other settings: model.d_ff \(24, now 25\), optimizer.clip_norm \(nothing, "
        r"now 1.0\), training.seed \(1, now 9\) cannot change when a run resumes. These keys can: "
        r"(data.data_dir, )?data.store, training.updates, .*config.toml has the settings of the "
        rf"run. To start another run from its weights, set \[model\] start_from = "
        rf'"{run.path}".$'
    )
    with pytest.raises(SettingsError, match=message) as error:
        check_changes(run, before, configured(*changes))
    assert "\n" not in str(error.value)
    check_changes(run, before, configured(*changes[3:]))


def test_training_cannot_end_before_the_current_update(configured, tmp_path):
    run = begun(tmp_path / "run", configured())
    message = (
        f"training.updates must be at least 5, the number of updates that {run.path} has done. "
        "Received: training.updates=4."
    )
    with pytest.raises(SettingsError, match=message):
        check_changes(run, configured(), configured("training.updates=4"))
    check_changes(run, configured(), configured("training.updates=5"))


def test_changeable_settings_exist_and_do_not_affect_the_weights():
    sections = {name: field.annotation for name, field in Settings.model_fields.items()}
    sections = {**sections, "data": data_kinds()["tfds"]}
    free = {
        f"{name}.{key}"
        for name, section in sections.items()
        for key in getattr(section, "may_change", ())
    }
    known = {f"{name}.{key}" for name, schema in sections.items() for key in schema.model_fields}
    assert free <= known
    assert free == {"data.data_dir", "data.store"} | {
        f"training.{key}"
        for key in (
            "updates", "validate_every", "validate_sentences", "checkpoint_every", "best_by",
            "checkpoint_epochs", "keep_checkpoints", "patience", "final_model", "log_every",
            "progress_seconds", "jit_compile",
        )
    }  # fmt: skip


LINEAR = ('schedule.kind="linear"', "schedule.peak=0.5", "schedule.warmup_steps=2")


def test_a_schedule_until_the_end_of_training_is_extended_with_it(configured):
    """Keras's 0-based step 6 is update 7: the line from 0.5 at 2 to zero at 11, or at 20."""
    before, after = (configured(*LINEAR, f"training.updates={n}") for n in (11, 20))
    now, then = 0.5 * (20 - 7) / 18, 0.5 * (11 - 7) / 9
    assert describe_changes(before, after, 6) == [
        "Resuming with changed settings: training.updates from 11 to 20.",
        "From here on, the learning rate follows the schedule of a run of 20 updates: "
        f"{now:.3g} in the next update instead of {then:.3g}.",
    ]
    assert describe_changes(before, before, 6) == []


def test_a_run_without_checkpoints_does_not_start_again(folder, configured):
    run = Run(folder)
    shutil.rmtree(run.checkpoints)
    before = run.model.read_bytes(), run.history.read_bytes()
    message = f"{folder} has a model, but no checkpoint from which training could resume. Start"
    with pytest.raises(ValueError, match=message):
        run_quietly(configured("training.updates=11"), folder)
    assert (run.model.read_bytes(), run.history.read_bytes()) == before
    assert load_settings(run.config).training.updates == 6


@pytest.mark.slow
def test_a_stopped_run_may_end_at_its_last_checkpoint(folder, configured):
    """Checkpoint 4 is made the newest; its validation was never computed."""
    run = Run(folder)
    Checkpoints(run.checkpoints).path(6).unlink()
    for file in (run.model, run.metrics):
        file.unlink()
    figures, shown = run_quietly(configured("training.updates=4"), folder)
    assert (figures["updates"], figures["model_update"]) == (4, 4)
    assert shown.count("validation after update 4: ") == 1
    assert figures["validation"]["perplexity"] > 1


@pytest.fixture(scope="module")
def impatient(configured, tmp_path_factory):
    """A run that learns nothing and stops early, after update 4."""
    folder = tmp_path_factory.mktemp("impatient") / "run"
    overrides = (
        "training.validate_every=2", "training.best_by=perplexity", "training.validate_sentences=3",
        "schedule.peak=1e-30",
    )  # fmt: skip
    run_quietly(configured("training.patience=1", *overrides), folder)
    return folder, overrides


@pytest.mark.long
@pytest.mark.slow
def test_more_patience_resumes_a_run(impatient, configured, tmp_path):
    folder = shutil.copytree(impatient[0], tmp_path / "run")
    longer = configured("training.patience=1", "training.updates=20", *impatient[1])
    figures, shown = run_quietly(longer, folder)
    assert figures["updates"] == 4 and "it resumes with a larger `training.patience`" in shown
    figures, shown = run_quietly(configured("training.patience=2", *impatient[1]), folder)
    assert (figures["updates"], figures["stopped_early"]) == (6, True)
    assert "training.patience from 1 to 2" in shown


@pytest.mark.long
@pytest.mark.slow
def test_another_metric_restarts_the_search_for_the_best(impatient, configured, tmp_path):
    folder = shutil.copytree(impatient[0], tmp_path / "run")
    overrides = ["training.patience=1", *impatient[1], "training.best_by=loss"]
    figures, shown = run_quietly(configured(*overrides, "training.updates=6"), folder)
    assert "The search for the best validation starts again: its metric has changed." in shown
    assert (figures["updates"], figures["best_update"]) == (6, 6)


@pytest.mark.slow
def test_a_finished_run_can_switch_to_its_best_model(impatient, configured, tmp_path):
    folder = shutil.copytree(impatient[0], tmp_path / "run")
    assert json.loads(Run(folder).metrics.read_text())["model_update"] == 4
    best = configured("training.patience=1", *impatient[1], "training.final_model=best")
    figures, _ = run_quietly(best, folder)
    assert (figures["model_update"], figures["updates"]) == (2, 4)
    before = Run(folder).model.read_bytes()
    assert run_quietly(best, folder)[0] == figures
    assert Run(folder).model.read_bytes() == before


@pytest.mark.slow
def test_a_damaged_best_checkpoint_does_not_prevent_the_end_of_training(
    impatient, configured, tmp_path
):
    """The next best is used: checkpoint 4, since checkpoint 3 is damaged as well."""
    folder = shutil.copytree(impatient[0], tmp_path / "run")
    run = Run(folder)
    for file in (run.model, run.metrics):
        file.unlink()
    checkpoints = Checkpoints(run.checkpoints)
    assert checkpoints.paths() == [checkpoints.path(update) for update in (2, 4)]
    for update in (2, 3):
        checkpoints.path(update).write_bytes(b"no archive")
    best = configured("training.patience=1", *impatient[1], "training.final_model=best")
    figures, shown = run_quietly(best, folder)
    assert (figures["model_update"], figures["best_update"], figures["updates"]) == (4, 2, 4)
    assert (
        f"The best checkpoint cannot be used: {checkpoints.path(2)} is damaged or missing (its end "
        "is missing). The model is from update 4, the next best.\n"
    ) in shown
    assert run_quietly(best, folder)[1].endswith("with a larger `training.patience`.\n")
