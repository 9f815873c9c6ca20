"""From a configuration to a trained model, in one call that can be repeated until it is done."""

import json

import rich.console

from keras_transformer.atomic import replacing
from keras_transformer.run import Run

from .checkpoint import Checkpoints
from .session import Session, say
from .settings import SettingsError, differences, load_settings, save_settings


def train(settings, run_dir, *, console=None, callbacks=()):
    """Trains a model, or goes on where an earlier call stopped.

    What belongs to the run is kept in its folder: the settings, the vocabulary, checkpoints,
    TensorBoard logs, the learning curves as a table and as a picture (which needs matplotlib), and
    at the end the model and `metrics.json`. A call that is interrupted, by
    Ctrl-C or by a power cut, is repeated; on a CPU with the same number of threads it ends with the
    very weights that an uninterrupted call would have given.

    Args:
        settings: A `Settings`.
        run_dir: Folder of the run; created if missing.
        console: The `rich.console.Console` that progress is shown on. Default: stderr.
        callbacks: More Keras callbacks for `fit`.

    Returns:
        The content of `metrics.json`: `parameters`, `updates`, `tokens_seen` (real target tokens),
        `train_seconds` (of all calls together), `stopped_early`, `model_update` (the update that
        `model.keras` is from), `validation` (of that model) and `best_update` (`None` without
        `best_by`).

    Raises:
        SettingsError: If the folder holds a run with other settings.
        ValueError: If the loss or a weight is no longer a finite number.
        OSError: If something cannot be written, for example because the disk is full. Both name the
            checkpoint from which the same call goes on.
        KeyboardInterrupt: After Ctrl-C, when the update is finished and saved.
    """
    run = Run(run_dir)
    console = console or rich.console.Console(stderr=True)
    _claim(run, settings)
    metrics = _finished(run, settings)
    if metrics is not None:
        updates, total = metrics["updates"], settings.training.updates
        done = (
            f"all {total:,} updates are done"
            if updates == total
            else (f"it stopped early after update {updates:,} of {total:,}")
        )
        say(console, f"{run.path} is finished: {done}.")
        return metrics
    session = Session(run, settings, console)
    session.restore()
    session.fit(callbacks)
    return session.finish()


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
