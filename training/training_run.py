"""Training from a configuration to a model, in one call, which resumes when repeated."""

import contextlib
import os
import shutil
import zlib
from collections.abc import Sequence
from typing import Any

import keras
import rich.console
import tensorflow as tf

from keras_transformer.checks import require_tensorflow
from keras_transformer.files import remove_stale_drafts, replacing
from keras_transformer.lock import FolderLock
from keras_transformer.tasks.run import Run
from keras_transformer.text.vectors import check_vectors
from keras_transformer.training.changes import REOPENS, check_changes
from keras_transformer.training.data.checksums import plain_damage
from keras_transformer.training.devices.workers import Workers
from keras_transformer.training.inputs import is_surveyed, stores_of
from keras_transformer.training.loop.callbacks import Terminations
from keras_transformer.training.loop.checkpoint import Checkpoints
from keras_transformer.training.loop.messages import say
from keras_transformer.training.loop.start import Start
from keras_transformer.training.session import Session
from keras_transformer.training.settings.derived import check_length, complete
from keras_transformer.training.settings.schema import Settings
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import (
    SettingsError,
    differences,
    load_settings,
    save_settings,
)


def train(
    settings: Settings,
    run_dir: str | os.PathLike,
    *,
    strategy: tf.distribute.Strategy | None = None,
    console: rich.console.Console | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> dict[str, Any]:
    """Trains a model, or resumes an earlier call.

    Values that the settings omit depend on the size of the data; see `derive`. A run resumes with
    the values that it began with.

    The folder of the run contains the settings, the vocabulary, checkpoints, TensorBoard logs, the
    learning curves as a table and as a plot (which needs matplotlib), and at the end the model and
    `metrics.json`. Repeat a call that is interrupted, by Ctrl-C or by a power cut: on a CPU with
    the same number of threads it ends with exactly the weights of an uninterrupted call. A larger
    `training.updates` extends a finished or stopped run; the sections of the schema declare
    which other keys may change. A schedule that depends on the number of updates follows the
    new length from there on. With `model.start_from` a new run starts from the weights and the
    vocabulary of another one.

    Under a strategy every replica processes its rows of each batch. So `batch_tokens` is the size
    of the whole batch, and an update is the same as on one device, except for rounding and for
    dropout, whose masks the replicas share. A run may resume under another strategy. Several
    workers share the folder of the run; only worker 0, the chief, writes to it and shows messages.
    If a worker is lost, all workers end with an error; started again, they resume from the newest
    checkpoint.

    Args:
        settings: The `Settings`.
        run_dir: Folder of the run; created if missing.
        strategy: A strategy from `make_strategy`. Default: one device.
        console: The `rich.console.Console` for the progress. Default: stderr.
        callbacks: More Keras callbacks for `fit`.

    Returns:
        The content of `metrics.json`: `parameters`, `updates`, `tokens_seen` (target tokens without
        padding) or `examples_seen`, `train_seconds` (of all calls together), `stopped_early`,
        `model_update` (the update from which `model.keras` is), `validation` (of that model) and
        `best_update` (`None` without `best_by`). With `model.start_from` also `started_from`: the
        other `run` and its `model_update`. With `model.vectors` also `vectors`: its `file`, the
        number of tokens `found` in it and of those `missing`, and whether they are `frozen`.

    Raises:
        SettingsError: If the folder contains a run that cannot resume with these settings.
        FolderLocked: An `OSError`, if another process trains into the folder.
        DamagedStore: A `ValueError`, if the files of encoded examples are damaged.
        ValueError: If the loss or a weight becomes NaN or infinite, the settings do not suit the
            strategy, or the data of the workers differ. After NaN or infinite values the message
            names the checkpoint from which the same call resumes.
        OSError: If a file cannot be written, for example because the disk is full. The message
            names the checkpoint from which the same call resumes.
        ConnectionError: If another worker is lost. End the process with `os._exit` then: in an
            orderly shutdown TensorFlow may wait for that worker forever.
        KeyboardInterrupt: After Ctrl-C or SIGTERM on any worker, once the current update is
            finished and saved; immediately before the first and after the last update. Its argument
            is the number of the signal.
    """
    require_tensorflow("runs and their training")
    run = Run(run_dir)
    workers = Workers(strategy or tf.distribute.get_strategy())
    console = console or rich.console.Console(stderr=True)
    if not workers.is_chief:
        console = rich.console.Console(quiet=True)
    settings.task.get().require(settings)
    with Terminations(), workers.watch(), plain_damage(), contextlib.ExitStack() as stack:
        workers.require_same(settings=zlib.crc32(settings.model_dump_json().encode()))
        before = workers.chief_first(lambda: _kept(run, settings))
        settings = workers.chief_first(lambda: _completed(run, settings, before))
        metrics = workers.chief_first(lambda: _finished(run, settings, before))
        if metrics is not None:
            say(console, f"{run.path} is finished: {_how(metrics, settings)}.")
            return metrics
        start = None
        if settings.model.start_from is not None and not is_trained(run):
            start = Start(settings)
        if settings.model.vectors is not None and not is_trained(run):
            check_vectors(settings.model.vectors, settings.config().d_model)
        # Opened before the folder is created, so that an error in the data leaves no folder.
        data = workers.chief_first(lambda: _open(run, settings))
        lock = FolderLock(run.path)
        if workers.is_chief and not run.path.exists():
            stack.callback(_remove_if_empty, run.path)
        workers.chief_first(lambda: workers.is_chief and stack.enter_context(lock))
        if workers.is_chief and not run.config.exists():
            stack.enter_context(_beginning(run))
        kept = workers.chief_first(lambda: _claim(run, settings))
        session = Session(run, settings, data, console, workers, start, lock.check)
        session.restore(kept)
        workers.chief_first(lambda: _keep_changes(run, session.settings, kept))
        session.fit(callbacks)
        # The other workers read the metrics that the chief has written.
        return workers.chief_first(
            lambda: session.finish() if workers.is_chief else run.read_metrics()
        )


def _open(run, settings):
    """Returns the `Source` of the data, which are checked unless an earlier call has done so."""
    task = settings.task.get()
    data = open_source(settings.data, task.columns, check=False)
    if not is_surveyed(stores_of(run, settings), task, data):
        data.check()
    return data


def _kept(run, settings):
    """Returns the settings in the folder of a run; `None` if there are none.

    They share the configuration of the model with `settings` if both describe the same model.
    """
    return load_settings(run.config, like=settings) if run.config.exists() else None


def _completed(run, settings, before):
    """Returns the settings, completed with the numbers of a run that was trained already."""
    if before is not None and is_trained(run):
        completed = complete(settings, before)
        check_length(settings, completed)
        return completed
    return settings


def _how(metrics, settings):
    updates, total = metrics["updates"], settings.training.updates
    if updates == total:
        return f"all {total:,} updates are done"
    return (
        f"it stopped early after update {updates:,} of {total:,}; it resumes with a larger "
        "`training.patience`"
    )


@contextlib.contextmanager
def _beginning(run):
    """Removes the settings of a new run again if the call fails before it has anything else."""
    try:
        yield
    except Exception:
        if not run.vocabulary() and not is_trained(run):
            run.config.unlink(missing_ok=True)
            shutil.rmtree(run.store, ignore_errors=True)
        raise


def _remove_if_empty(folder):
    with contextlib.suppress(OSError):
        folder.rmdir()


def _claim(run, settings):
    """Prepares the folder of a run, which is locked now; a trained run does not change yet.

    Returns:
        The settings in the folder: the previous ones of a trained run, otherwise `settings`.
    """
    remove_stale_drafts(run.path)
    remove_stale_drafts(run.checkpoints)
    # Read again: until this process had the lock, another one may have trained the run.
    before = _kept(run, settings)
    if is_trained(run):
        check_changes(run, before or settings, settings)
        return before
    if before is None or before != complete(settings, before):
        run.remove_vocabulary()  # it belongs to settings with which nothing has been trained
        # Provenance and search belong to the run whose weights would have been the start.
        if before is not None and before.model.start_from is not None:
            run.origin.unlink(missing_ok=True)
            run.search.unlink(missing_ok=True)
        with replacing(run.config) as temporary:
            save_settings(settings, temporary)
        return settings
    return before


def _keep_changes(run, settings, kept):
    """Writes the settings if they have changed, and removes metrics, which are then outdated.

    In a new run the changes are the numbers that depend on the data.

    Args:
        run: The `Run`, which is locked.
        settings: Its `Settings` from now on.
        kept: The `Settings` in its folder; `None` if there are none.
    """
    if kept != settings:
        run.metrics.unlink(missing_ok=True)
        with replacing(run.config) as temporary:
            save_settings(settings, temporary)


def is_trained(run) -> bool:
    """Returns `True` if a `Run` has a model or a checkpoint."""
    return run.model.exists() or bool(Checkpoints(run.checkpoints).paths())


def _finished(run, settings, before):
    """Returns the metrics of a run that is finished with these settings, or `None`.

    Args:
        run: The `Run`.
        settings: The `Settings` with which it resumes.
        before: The `Settings` in its folder; `None` if there are none.

    Raises:
        SettingsError: If the folder contains a run that cannot resume with these settings.
    """
    metrics = run.read_metrics()
    if "averaged" in metrics:
        raise SettingsError(
            f"{run.path} is an average of checkpoints: train {metrics['averaged_run']} instead."
        )
    if before is None:
        return None
    if is_trained(run):
        check_changes(run, before, settings)
    changed = set(differences(before, settings))
    if not (run.model.exists() and metrics) or changed & REOPENS:
        return None
    done = metrics.get("updates")
    reached = done is not None and done == settings.training.updates
    return metrics if reached or metrics.get("stopped_early") else None
