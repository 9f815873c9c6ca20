"""From a configuration to a trained model, in one call that can be repeated until it is done."""

import json
import zlib

import rich.console
import tensorflow as tf

from keras_transformer.atomic import replacing
from keras_transformer.run import Run

from .checkpoint import Checkpoints
from .session import Session, say
from .settings import SettingsError, differences, load_settings, save_settings
from .workers import Workers


def train(settings, run_dir, *, strategy=None, console=None, callbacks=()):
    """Trains a model, or goes on where an earlier call stopped.

    What belongs to the run is kept in its folder: the settings, the vocabulary, checkpoints,
    TensorBoard logs, the learning curves as a table and as a picture (which needs matplotlib), and
    at the end the model and `metrics.json`. A call that is interrupted, by
    Ctrl-C or by a power cut, is repeated; on a CPU with the same number of threads it ends with the
    very weights that an uninterrupted call would have given.

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
        The content of `metrics.json`: `parameters`, `updates`, `tokens_seen` (real target tokens),
        `train_seconds` (of all calls together), `stopped_early`, `model_update` (the update that
        `model.keras` is from), `validation` (of that model) and `best_update` (`None` without
        `best_by`).

    Raises:
        SettingsError: If the folder holds a run with other settings.
        ValueError: If the loss or a weight is no longer a finite number, the settings do not fit
            the strategy, or the workers' data differ.
        OSError: If something cannot be written, for example because the disk is full. Both name the
            checkpoint from which the same call goes on.
        ConnectionError: If another worker is lost. Leave the process with `os._exit` then: in an
            orderly shutdown TensorFlow may wait for that worker for ever.
        KeyboardInterrupt: After Ctrl-C, on any worker, when the update is finished and saved.
    """
    run = Run(run_dir)
    workers = Workers(strategy or tf.distribute.get_strategy())
    console = console or rich.console.Console(stderr=True)
    if not workers.is_chief:
        console = rich.console.Console(quiet=True)
    with workers.watch():
        workers.require_same(settings=zlib.crc32(settings.model_dump_json().encode()))
        workers.chief_first(lambda: _claim(run, settings))
        metrics = _finished(run, settings)
        if metrics is not None:
            say(console, f"{run.path} is finished: {_how(metrics, settings)}.")
            return metrics
        session = Session(run, settings, console, workers)
        session.restore()
        session.fit(callbacks)
        # What the chief has written the others find.
        return workers.chief_first(lambda: _finished(run, settings) or session.finish())


def _how(metrics, settings):
    updates, total = metrics["updates"], settings.training.updates
    if updates == total:
        return f"all {total:,} updates are done"
    return f"it stopped early after update {updates:,} of {total:,}"


def _claim(run, settings):
    """Keeps the settings in the run, or refuses a run that was trained with others."""
    changed = differences(load_settings(run.config), settings) if run.config.exists() else None
    if changed == []:
        return
    if changed and (run.model.exists() or Checkpoints(run.checkpoints).paths()):
        raise SettingsError(
            f"{run.path} was begun with other settings: {', '.join(changed)} changed. "
            f"{run.config} has those it was begun with; or choose another folder."
        )
    run.path.mkdir(parents=True, exist_ok=True)
    run.tokenizer.unlink(missing_ok=True)  # of settings under which nothing was trained yet
    with replacing(run.config) as temporary:
        save_settings(settings, temporary)


def _finished(run, settings):
    """The figures of a training that is done, or `None`."""
    if not (run.model.exists() and run.metrics.exists()):
        return None
    metrics = json.loads(run.metrics.read_text(encoding="utf-8"))
    if "averaged" in metrics:
        raise SettingsError(
            f"{run.path} is the average of {metrics['averaged_run']}, which is what to train."
        )
    complete = metrics.get("updates") == settings.training.updates
    return metrics if complete or metrics.get("stopped_early") else None
