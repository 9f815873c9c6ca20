"""Training runs of a second: their data, their commands, and comparisons of their ends."""

import contextlib
import functools
import io
import json
from unittest import mock

import keras
import numpy as np
import rich.console

from keras_transformer.plots.figure import new_figure
from keras_transformer.tasks.run import Run
from keras_transformer.training.loop import curve
from keras_transformer.training.loop.checkpoint import Checkpoints
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.training_run import train

CONFIG = """
[model]
preset = "tiny"
num_layers = 1
d_model = 16
d_ff = 24
num_heads = 2
dropout = 0.2
attention_dropout = 0.1
max_length = 20

[data]
source = "text"
train_source = "train.src"
train_target = "train.tgt"
validation_source = "validation.src"
validation_target = "validation.tgt"
max_length = 14
batch_tokens = 60

[vocabulary]
size = 15

[schedule]
warmup_steps = 1
peak = 0.01

[training]
updates = 11
validate_every = 6
validate_sentences = 0
checkpoint_every = 2
log_every = 3
progress_seconds = 0.0001
"""


def write_pairs(folder, split, count, seed):
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, 10, rng.integers(1, 6)) for _ in range(count)]
    for side, order in (("src", 1), ("tgt", -1)):
        lines = ["".join(map(str, row[::order])) for row in rows]
        (folder / f"{split}.{side}").write_text("\n".join(lines) + "\n")


def write_small_corpus(folder):
    """Writes 40 pairs for training, 7 for validation, and `CONFIG` as `config.toml`."""
    write_pairs(folder, "train", 40, seed=1)
    write_pairs(folder, "validation", 7, seed=2)
    (folder / "config.toml").write_text(CONFIG)


class At(keras.callbacks.Callback):
    """Calls a function after a given update of this call."""

    def __init__(self, number, action):
        super().__init__()
        self.number, self.action = number, action

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == self.number:
            self.action()


def run_quietly(settings, folder, callbacks=(), draws=False):
    """Trains, and returns the result and the messages.

    Unless `draws`, the plot of the learning curve is empty, because drawing it takes as long as
    several updates.
    """
    text = io.StringIO()
    console = rich.console.Console(file=text, width=40)
    empty = mock.patch.object(curve, "curve_figure", lambda history, task: new_figure(1, 1))
    try:
        with contextlib.nullcontext() if draws else empty:
            return train(settings, folder, console=console, callbacks=callbacks), text.getvalue()
    except KeyboardInterrupt:
        return None, text.getvalue()


def finished_runs(corpus, tmp_path_factory):
    """Returns a function from a kind to its uninterrupted run and the result of `train`.

    Each run is trained when it is first needed, with `KIND.toml` of the folder `corpus`.
    """

    @functools.cache
    def run(kind):
        folder = tmp_path_factory.mktemp(kind) / "run"
        settings = load_settings(corpus / f"{kind}.toml")
        return folder, run_quietly(settings, folder, draws=True)[0]

    return run


def assert_same_end(folder, finished):
    """Checks that all weights of model and optimizer equal those of `finished` bit for bit."""
    ours, theirs = Run(folder), Run(finished[0])
    for one, two in zip(ours.load_model().weights, theirs.load_model().weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), two.numpy(), err_msg=one.path)
    last = [Checkpoints(run.checkpoints).paths()[-1] for run in (ours, theirs)]
    first, second = (np.load(path) for path in last)
    # The last member, "state", contains the time. Seeds of dropout are named differently in every
    # process.
    for one, two in zip(first.files[:-1], second.files[:-1], strict=True):
        np.testing.assert_array_equal(first[one], second[two], err_msg=one)
    one, two = (json.loads(run.metrics.read_text()) for run in (ours, theirs))
    assert {**one, "train_seconds": 0} == {**two, "train_seconds": 0}


def tf_config(workers=("a:1", "b:2"), kind="worker", index=0, **cluster):
    """Returns the environment variable `TF_CONFIG` of one task of a cluster."""
    cluster = {"worker": list(workers), **cluster}
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
