"""SST-2 from scratch: the package's encoder beside LSTMs of `keras.layers`, five seeds each.

    KERAS_TRANSFORMER_DATA=... python benchmarks/classification.py --output RUNS

All of them have equally many parameters and are trained by one loop, the package's, with one
configuration: the same pieces in the same batches, the same optimizer, schedule, number of updates,
dropout, smoothing and R-Drop, and the same choice of the checkpoint that becomes the model. What is
finished in RUNS is not trained again, and what was interrupted goes on. Prints for each model the
median and the range of its accuracies on the test split; writes RUNS/classification.json.

With --choose the test split is not opened, and the table is of the validation: the figures to
choose settings by.
"""

import dataclasses
import json
import pathlib
import statistics

import click
import keras
import rich.console
import tensorflow as tf
from command import describe_machine, names

from keras_transformer.run import Run
from keras_transformer.training.data.sources import open_source
from keras_transformer.training.devices.workers import Workers
from keras_transformer.training.evaluate import evaluate_split
from keras_transformer.training.factory import model_config
from keras_transformer.training.loop.final import load_final
from keras_transformer.training.loop.session import Session
from keras_transformer.training.settings.toml import SettingsError, load_settings, save_settings
from keras_transformer.training.train import train

OURS = "transformer"


@dataclasses.dataclass(frozen=True)
class Recurrent:
    """An LSTM of `keras.layers` between an embedding and a linear map.

    Args:
        directions: 1, or 2 for a bidirectional one.
        pooling: What becomes of its outputs: `"last"`, the last one of each direction, or `"max"`
            or `"mean"` over those of real tokens.
    """

    directions: int
    pooling: str

    def units(self, config, parameters):
        """Returns the units with which the model has nearest to so many parameters."""
        return min(range(1, 1024), key=lambda units: abs(self.count(config, units) - parameters))

    def count(self, config, units):
        """Returns the parameters of the model."""
        cells = 4 * units * (config.d_model + units + 1) * self.directions
        head = (self.directions * units + 1) * config.num_labels
        return config.vocab_size * config.d_model + cells + head

    def make(self, config, units, policy):
        """Returns a functional Keras model of token ids `[B, S]`, which gives logits `[B, C]`.

        Dropout is where it is in the package's model: after the embedding, after the layer (there
        a block) and before the linear map.
        """
        tokens = keras.Input((None,), dtype="int32")
        real = keras.ops.not_equal(tokens, config.pad_id)  # [B, S]
        embedding = keras.layers.Embedding(config.vocab_size, config.d_model, dtype=policy)
        x = keras.layers.Dropout(config.dropout)(embedding(tokens))  # [B, S, D]
        layer = keras.layers.LSTM(units, return_sequences=self.pooling != "last", dtype=policy)
        if self.directions == 2:
            layer = keras.layers.Bidirectional(layer, dtype=policy)
        x = keras.layers.Dropout(config.dropout)(layer(x, mask=real))
        if self.pooling != "last":
            x = keras.layers.Dropout(config.dropout)(_pooled(x, real, self.pooling))  # [B, U]
        logits = keras.layers.Dense(config.num_labels, dtype=policy)(x)  # [B, C]
        return keras.Model(tokens, keras.ops.cast(logits, "float32"))


# Chosen on the validation split, as the settings of `sst2` were.
MODELS = {
    OURS: None,
    "lstm": Recurrent(1, "last"),
    "lstm_max": Recurrent(1, "max"),
    "bidirectional": Recurrent(2, "last"),
    "bidirectional_max": Recurrent(2, "max"),
    "bidirectional_mean": Recurrent(2, "mean"),
}


def _pooled(x, real, kind):
    """The maximum or the mean of `[B, S, U]` over real tokens, `[B, U]`."""
    real = keras.ops.expand_dims(real, axis=-1)  # [B, S, 1]
    if kind == "max":
        return keras.ops.max(keras.ops.where(real, x, -1e4), axis=1)
    weights = keras.ops.cast(real, x.dtype)
    return keras.ops.sum(x * weights, axis=1) / keras.ops.sum(weights, axis=1)


def measure(name, settings, output, choose, console):
    """Trains a model, unless it is finished, and returns its figures."""
    place = output / f"{name}-{settings.training.seed}"
    if MODELS[name] is None:
        figures = train(settings, place, console=console)
        accuracy = None if choose else evaluate_split(place)["accuracy"]
    else:
        ours = Run(output / f"{OURS}-{settings.training.seed}")
        figures, accuracy = _measure_recurrent(MODELS[name], settings, place, ours, choose, console)
    kept = ("parameters", "train_seconds", "model_update", "validation")
    measured = {key: figures[key] for key in kept}
    return measured if choose else {**measured, "test": accuracy}


def _measure_recurrent(kind, settings, place, ours, choose, console):
    """As `train`, with another model; returns the figures, and the accuracy on the test split."""
    run, parameters = Run(place), ours.read_metrics()["parameters"]
    place.mkdir(parents=True, exist_ok=True)
    if run.config.exists() and load_settings(run.config) != settings:
        raise SettingsError(f"{place} was trained with other settings.")
    save_settings(settings, run.config)
    run.write_tokenizers(ours.load_tokenizers())
    session = _session(kind, run, settings, parameters, console)
    session.restore()
    session.fit()
    update, validation = load_final(session)
    figures = {
        "parameters": session.learner.model.count_params(),
        "train_seconds": round(session.seconds, 1),
        "model_update": update,
        "validation": validation,
    }
    return figures, None if choose else _accuracy(session)


def _session(kind, run, settings, parameters, console):
    """A `Session` with a recurrent model in the place of the package's."""
    task = settings.task.get()
    data = open_source(settings.data, task.columns)
    config = model_config(
        settings, run.load_tokenizers(), **data.facts(), **task.fields(data.rows("train"))
    )
    units = kind.units(config, parameters)
    return Session(
        run,
        settings,
        data,
        console,
        Workers(tf.distribute.get_strategy()),
        make_model=lambda policy: kind.make(config, units, policy),
    )


def _accuracy(session):
    """Percent of the test split."""
    corpus = session.training.corpus(session.data, "test", session.settings.data)
    if corpus.size != session.data.count("test"):
        raise click.ClickException("`data.max_length` must not leave out texts of the test split.")
    batches = corpus.batches(session.settings.data.size_of_batch)
    return 100 * session.learner.evaluate(batches, verbose=0, return_dict=True)["accuracy"]


def accuracies(results, choose):
    """Returns the accuracies of each model in percent, a dictionary of lists."""
    return {
        name: [
            100 * figures["validation"]["accuracy"] if choose else figures["test"]
            for figures in of_seeds.values()
        ]
        for name, of_seeds in results.items()
    }


def table(results, choose):
    """Returns the lines of the table."""
    lines = [f"{'':<20}{'parameters':>12}{'median':>9}{'least':>8}{'most':>8}"]
    for name, values in accuracies(results, choose).items():
        parameters = next(iter(results[name].values()))["parameters"]
        figures = statistics.median(values), min(values), max(values)
        cells = "{:>9.2f}{:>8.2f}{:>8.2f}".format(*figures)
        lines.append(f"{name:<20}{parameters:>12,}{cells}")
    return lines


# fmt: off
@click.command(context_settings={"show_default": True})
@click.option("--output", type=click.Path(path_type=pathlib.Path), required=True,
              help="Folder of the runs.")
@click.option("--config", default="sst2", help="A configuration for text classification.")
@click.option("--models", default=f"{OURS},lstm,bidirectional", callback=names(MODELS))
@click.option("--seeds", default="1,2,3,4,5")
@click.option("--choose", is_flag=True, help="Leave the test split closed.")
@click.option("--set", "overrides", multiple=True, help="A setting of every model's training.")
# fmt: on
def main(output, config, models, seeds, choose, overrides):
    """Train, evaluate, and print the table."""
    console = rich.console.Console(stderr=True)
    models = [OURS, *(name for name in models if name != OURS)]  # its pieces and size are theirs
    results = {name: {} for name in models}
    for seed in seeds.split(","):
        try:
            settings = load_settings(config, [*overrides, f"training.seed={seed}"])
            for name in models:
                results[name][seed] = measure(name, settings, output, choose, console)
                print(f"{name} {seed}: {results[name][seed]}", flush=True)
        except SettingsError as error:
            raise click.ClickException(str(error)) from error
    print("\n".join(table(results, choose)))
    split = "validation" if choose else "test"
    report = {"machine": describe_machine(1), "config": config, "overrides": overrides,
              "split": split, "accuracy": accuracies(results, choose),
              "results": results}  # fmt: skip
    (output / "classification.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
