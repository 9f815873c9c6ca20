"""Training from a configuration to a model, in one call that can be repeated until it is done."""

import contextlib
import shutil
import zlib

import rich.console
import tensorflow as tf

from keras_transformer.files import remove_stale_drafts, replacing
from keras_transformer.tasks.run import Run
from keras_transformer.text.vectors import check_vectors
from keras_transformer.training.changes import REOPENS, check_changes
from keras_transformer.training.data.checksums import plain_damage
from keras_transformer.training.data.lock import RunLock
from keras_transformer.training.data.sources import open_source
from keras_transformer.training.devices.workers import Workers
from keras_transformer.training.inputs import is_surveyed, stores_of
from keras_transformer.training.loop.callbacks import Terminations
from keras_transformer.training.loop.checkpoint import Checkpoints
from keras_transformer.training.loop.messages import say
from keras_transformer.training.loop.start import Start
from keras_transformer.training.session import Session
from keras_transformer.training.settings.derived import check_length, complete
from keras_transformer.training.settings.toml import (
    SettingsError,
    differences,
    load_settings,
    save_settings,
)


def train(settings, run_dir, *, strategy=None, console=None, callbacks=()):
    """Trains a model, or goes on where an earlier call stopped.

    Numbers that the settings leave out follow from the size of the data; see `derive`. A run that
    goes on has those that it was begun with.

    What belongs to the run is kept in its folder: the settings, the vocabulary, checkpoints,
    TensorBoard logs, the learning curves as a table and as a picture (which needs matplotlib), and
    at the end the model and `metrics.json`. A call that is interrupted, by
    Ctrl-C or by a power cut, is repeated; on a CPU with the same number of threads it ends with the
    very weights that an uninterrupted call would have given. With a larger `training.updates` a
    finished or stopped training is made longer; the sections of the schema declare what else may
    change. A schedule that ends with the training follows its new length from there on. With
    `model.start_from` a new training begins with the weights and the vocabulary of another run.

    Under a strategy every replica gets its rows of each batch, so `batch_tokens` is what one device
    would see, and an update is the same but for rounding and for dropout, whose masks the replicas
    share. A run may be continued under another strategy. Several workers share the folder of the
    run; worker 0, the chief, writes it and speaks for all. If one is lost, all of them end with an
    error; started again, all of them go on from the newest checkpoint.

    Args:
        settings: A `Settings`.
        run_dir: Folder of the run; created if missing.
        strategy: A strategy from `make_strategy`. Default: one device.
        console: The `rich.console.Console` that progress is shown on. Default: stderr.
        callbacks: More Keras callbacks for `fit`.

    Returns:
        The content of `metrics.json`: `parameters`, `updates`, `tokens_seen` (real target tokens)
        or `examples_seen`, `train_seconds` (of all calls together), `stopped_early`,
        `model_update` (the update that `model.keras` is from), `validation` (of that model) and
        `best_update` (`None` without `best_by`); after `model.start_from` also `started_from`, a
        `run` and its `model_update`; after `model.vectors` also `vectors`, its `file`, how many
        pieces were `found` there and how many are `missing`, and whether they are `frozen`.

    Raises:
        SettingsError: If the folder holds a run that cannot go on with these settings.
        RunLocked: An `OSError`, if another training writes into the folder.
        DamagedStore: A `ValueError`, if the files of encoded examples are damaged.
        ValueError: If the loss or a weight is no longer a finite number, the settings do not fit
            the strategy, or the workers' data differ.
        OSError: If something cannot be written, for example because the disk is full. Both name the
            checkpoint from which the same call goes on.
        ConnectionError: If another worker is lost. Leave the process with `os._exit` then: in an
            orderly shutdown TensorFlow may wait for that worker for ever.
        KeyboardInterrupt: After Ctrl-C or SIGTERM, on any worker, when the update is finished and
            saved; before the first and after the last update at once. It has the signal's number.
    """
    run = Run(run_dir)
    workers = Workers(strategy or tf.distribute.get_strategy())
    console = console or rich.console.Console(stderr=True)
    if not workers.is_chief:
        console = rich.console.Console(quiet=True)
    settings.task.get().require(settings)
    with Terminations(), workers.watch(), plain_damage(), contextlib.ExitStack() as stack:
        workers.require_same(settings=zlib.crc32(settings.model_dump_json().encode()))
        settings = workers.chief_first(lambda: _completed(run, settings))
        metrics = workers.chief_first(lambda: _finished(run, settings))
        if metrics is not None:
            say(console, f"{run.path} is finished: {_how(metrics, settings)}.")
            return metrics
        start = None
        if settings.model.start_from is not None and not is_trained(run):
            start = Start(settings, load_settings)
        if settings.model.vectors is not None and not is_trained(run):
            check_vectors(settings.model.vectors, settings.config().d_model)
        # Before the folder is touched: a mistake in the data leaves nothing there.
        data = workers.chief_first(lambda: _open(run, settings))
        lock = RunLock(run.path)
        if workers.is_chief and not run.path.exists():
            stack.callback(_remove_if_empty, run.path)
        workers.chief_first(lambda: workers.is_chief and stack.enter_context(lock))
        if workers.is_chief and not run.config.exists():
            stack.enter_context(_beginning(run))
        before = workers.chief_first(lambda: _claim(run, settings))
        session = Session(run, settings, data, console, workers, start, lock.check)
        session.restore(before)
        workers.chief_first(lambda: _keep_changes(run, session.settings))
        session.fit(callbacks)
        # What the chief has written the others read.
        return workers.chief_first(
            lambda: session.finish() if workers.is_chief else run.read_metrics()
        )


def _open(run, settings):
    """The `Source` of the data, which are read and checked unless that has been done before."""
    task = settings.task.get()
    data = open_source(settings.data, task.columns, check=False)
    if not is_surveyed(stores_of(run, settings), task, data):
        data.check()
    return data


def _completed(run, settings):
    """The settings, with the numbers of a run that was trained where they leave them out."""
    if run.config.exists() and is_trained(run):
        completed = complete(settings, load_settings(run.config))
        check_length(settings, completed)
        return completed
    return settings


def _how(metrics, settings):
    updates, total = metrics["updates"], settings.training.updates
    if updates == total:
        return f"all {total:,} updates are done"
    return (
        f"it stopped early after update {updates:,} of {total:,}; a larger `training.patience` "
        "lets it go on"
    )


@contextlib.contextmanager
def _beginning(run):
    """Takes the settings back out of a new run's folder if it fails before it has anything else."""
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
    """Gives a folder to a training; in a run that was trained nothing is changed yet.

    Returns:
        The settings under which the run was trained until now, if it was.
    """
    remove_stale_drafts(run.path)
    remove_stale_drafts(run.checkpoints)
    if is_trained(run):
        before = load_settings(run.config) if run.config.exists() else settings
        check_changes(run, before, settings)  # once more: nobody else trains it now
        return before
    before = load_settings(run.config) if run.config.exists() else None
    if before is None or before != complete(settings, before):
        run.remove_vocabulary()  # of settings under which nothing was trained yet
        if before is not None and before.model.start_from is not None:  # origin, search: of that
            run.origin.unlink(missing_ok=True)
            run.search.unlink(missing_ok=True)
        with replacing(run.config) as temporary:
            save_settings(settings, temporary)
    return None


def _keep_changes(run, settings):
    """Keeps what is different in a run that goes on, whose figures are no longer those of the end,
    and in a new one what the size of the data has decided.
    """
    if not run.config.exists() or load_settings(run.config) != settings:
        run.metrics.unlink(missing_ok=True)
        with replacing(run.config) as temporary:
            save_settings(settings, temporary)


def is_trained(run):
    """Returns whether a `Run` holds what a training has learned."""
    return run.model.exists() or bool(Checkpoints(run.checkpoints).paths())


def _finished(run, settings):
    """The figures of a training that is done under these settings, or `None`.

    Raises:
        SettingsError: If the folder holds a run that cannot go on with them.
    """
    metrics = run.read_metrics()
    if "averaged" in metrics:
        raise SettingsError(
            f"{run.path} is the average of {metrics['averaged_run']}, which is what to train."
        )
    if not run.config.exists():
        return None
    before = load_settings(run.config)
    if is_trained(run):
        check_changes(run, before, settings)
    changed = set(differences(before, settings))
    if not (run.model.exists() and metrics) or changed & REOPENS:
        return None
    done = metrics.get("updates")
    reached = done is not None and done == settings.training.updates
    return metrics if reached or metrics.get("stopped_early") else None
