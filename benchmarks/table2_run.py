"""The multiplications that the training of a run needs, counted, for `table2.py`."""

import pathlib
import statistics

import rich.console
import tensorflow as tf
from measurements import BenchmarkError
from table1_counts import Counts

from keras_transformer.tasks.run import Run
from keras_transformer.training.devices.workers import Workers
from keras_transformer.training.session import Session
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import load_settings


class Trained:
    """A finished run, with the mean cost of its batches as `metadata`.

    Args:
        path: Folder of the run, whose data must still be there.
        batches: Number of batches to count, at equal distances in the first epoch.

    Raises:
        BenchmarkError: If the run is not finished.
    """

    def __init__(self, path, batches):
        run = Run(path)
        metrics = run.read_metrics()
        if "train_seconds" not in metrics:
            raise BenchmarkError(f"{path} is not a finished run: train it to the end.")
        settings = load_settings(run.config)
        session = _session(run, settings)
        model = session.learner.model
        costs = [
            Counts(lambda batch: model(batch, training=False), inputs).multiplications
            for inputs in _inputs(session, batches)
        ]
        consistency = session.learner.consistency
        own = {name: value for name, value in metrics.items() if name.endswith("_seen")}
        self.metadata = {
            "parameters": metrics["parameters"], "updates": metrics["updates"], **own,
            "train_seconds": metrics["train_seconds"], "test": _test(session.task, metrics),
            "precision": session.learner.dtype_policy.name,
            "passes": metrics["updates"] * settings.training.accumulate * (2 if consistency else 1),
            "multiplications": statistics.mean(costs), "batch_multiplications": costs,
        }  # fmt: skip


def _session(run, settings):
    """Returns the `Session` of a run, which trains nothing unless it is asked to."""
    data = open_source(settings.data, settings.task.get().columns, check=False)
    workers = Workers(tf.distribute.get_strategy())
    return Session(run, settings, data, rich.console.Console(quiet=True), workers)


def _inputs(session, count):
    """Returns the inputs of batches at equal distances in the first epoch."""
    every = max(1, session.epochs.steps // count)
    batches = session.epochs.batches(0, every=every)
    return [inputs for inputs, _ in batches.take(count)]


def _test(task, metrics):
    """Returns the results of `evaluate` for the test split, by the names of the task's metrics."""
    return {name: metrics[name] for name in task.metrics if isinstance(metrics.get(name), float)}


def make(order):
    """Returns a `Trained` run."""
    return Trained(pathlib.Path(order["run"]), order["batches"])
