"""Averaging of a run's last checkpoints into a run of its own."""

import contextlib
import os
from pathlib import Path

import numpy as np

from keras_transformer.tasks.run import Run
from keras_transformer.training.converted import new_run
from keras_transformer.training.factory import model_config
from keras_transformer.training.loop.checkpoint import STATE, Checkpoints, read, read_state
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.settings.toml import load_settings, save_settings
from keras_transformer.training.tuning.adapters import add_adapters, merged_weights
from keras_transformer.training.tuning.rounded_weights import RoundedWeights


def average_checkpoints(
    run_dir: str | os.PathLike, last: int = 5, output: str | os.PathLike | None = None
) -> Path:
    """Averages the weights of the last checkpoints and writes the model as a new run.

    The new folder contains the settings, the vocabulary if there is one, `model.keras` and
    `metrics.json`, which names the checkpoints. `predict`, `evaluate`, `export` and `plot` accept
    it like any run. It is complete or absent. The original run does not change and need not be
    finished.

    With `[training] quantize` the weights before rounding are averaged, and the average is rounded.
    The trained weights themselves are averaged, even if `[optimizer] ema_momentum` keeps a moving
    average. The best checkpoint, which `[training] best_by` keeps, is used only if it is among the
    last `keep_checkpoints`.

    Args:
        run_dir: Folder of the run.
        last: Number of checkpoints to average, the newest ones.
        output: Folder of the new run. Default: `RUN-average-N` beside the run.

    Returns:
        The path of the new run.

    Raises:
        ValueError: If there are fewer checkpoints, one is damaged or belongs to another model, or
            `output` is not empty.
        OSError: If `output` cannot be written, for example because the disk is full.

    Reference: Vaswani et al. (2017), section 6.1: the last 5 of a base model, the last 20 of a big
    one, written at intervals of 10 minutes.
    """
    run = Run(run_dir)
    output = Path(f"{run.path}-average-{last}" if output is None else output)
    if output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise ValueError(f"{output} exists already: name another folder with --output.")
    if not run.path.exists():
        run.require_finished(vocabulary=False)
    settings = load_settings(run.config)
    tokenizers = run.load_tokenizers() if settings.task.get().texts else None
    keep = settings.training.keep_checkpoints
    fields = _whole(read_state, _newest(run, last, keep)[-1]).get("fields", {})
    model_class = settings.task.get().pipeline_class().model_class
    config = run.configure(model_config(settings, tokenizers, **fields))
    model = model_class(config, dtype="float32")
    trained = model_class(config, dtype="float32")
    if settings.training.lora is not None:
        add_adapters(trained, settings.training.lora, settings.model.parts)
    paths = _average(run, last, keep, model, trained)
    kind = settings.training.quantize
    rounding = contextlib.nullcontext() if kind is None else RoundedWeights(model, kind).used()
    metrics = {"averaged_run": str(run.path), "averaged": [path.name for path in paths]}
    try:
        with rounding:
            _write(output, run, settings, tokenizers, model, metrics)
    except OSError as error:
        raise OSError(f"{output} cannot be written: {error.strerror or error}.") from error
    return output


def _write(output, run, settings, tokenizers, model, metrics):
    """Writes the new run, completely or not at all."""
    with new_run(output) as new:
        save_settings(settings, new.config)
        if tokenizers is not None:
            new.write_tokenizers(tokenizers)
        new.inherit(run)
        new.write_prompts(run.read_prompts())
        model.save(new.model)
        new.update_metrics(parameters=model.count_params(), **metrics)


def _average(run, last, keep, model, trained):
    """Gives a model the mean of the last checkpoints, of a model `trained`; returns their paths.

    If the run is still being trained, the oldest one may be removed meanwhile; then the call starts
    again with the newer ones.
    """
    for attempt in range(5):
        paths = _newest(run, last, keep)
        try:
            _assign_mean(model, trained, paths)
        except ValueError:
            if attempt == 4 or all(path.exists() for path in paths):
                raise
        else:
            return paths


def _newest(run, last, keep):
    if last < 1:
        raise ValueError(f"`last` must be positive. Received: last={last}.")
    paths = Checkpoints(run.checkpoints).paths()[-keep:]  # without an older one, the best
    if len(paths) < last:
        raise ValueError(
            f"{run.path} has {len(paths)} of the {last} checkpoints to average. Training writes "
            "one every training.checkpoint_every updates, and keeps the last "
            f"{keep} (training.keep_checkpoints)."
        )
    return paths[-last:]


def _assign_mean(model, trained, paths):
    """Gives a model the mean of the weights of checkpoints, computed in float64.

    Args:
        model: The model.
        trained: The model of the checkpoints, which may have adapters; it is changed.
        paths: The checkpoints.
    """
    variables = Learner(trained).variables  # these come first in a checkpoint, then the optimizer's
    places = {id(variable): place for place, variable in enumerate(variables)}
    sums = [np.zeros(weight.shape) for weight in model.weights]
    for path in paths:
        arrays = _read(path)
        for weight in trained.weights:
            place = places[id(weight)]
            if place >= len(arrays) or arrays[place].shape != tuple(weight.shape):
                raise ValueError(f"{path} belongs to another model: {weight.path} does not fit.")
            weight.assign(arrays[place])
        for total, value in zip(sums, merged_weights(trained), strict=True):
            total += value
    model.set_weights([total / len(paths) for total in sums])


def _read(path):
    """Returns the arrays of a checkpoint, in the order of the variables."""
    arrays = _whole(read, path)
    return [arrays[key] for key in sorted(arrays) if key != STATE]


def _whole(read, path):
    """Calls a function that reads a checkpoint; an error names the checkpoint."""
    try:
        return read(path)
    except ValueError as error:
        raise ValueError(
            f"{path} is damaged ({error}): nothing was averaged. "
            "Average fewer checkpoints, or remove it to average the ones before it."
        ) from error
