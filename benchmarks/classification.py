"""SST-2 from scratch: the package's encoder beside LSTMs of `keras.layers`, five seeds each.

    KERAS_TRANSFORMER_DATA=... python benchmarks/classification.py --output RUNS

All of them have equally many parameters and are trained by one loop, the package's, with one
configuration: the same pieces in the same batches, the same optimizer, schedule, number of updates,
dropout, smoothing and R-Drop. Two checkpoints of each are measured: the last, and that of the best
accuracy on the validation split. What is finished in RUNS is not trained again, and what was
interrupted goes on. Prints for each model the median and the range of its accuracies on the test
split; writes RUNS/classification.json.

With --choose the test split is not opened, and the table is of the validation: the figures to
choose settings by.
"""

import dataclasses
import functools
import json
import pathlib
import statistics

import click
import keras
import rich.console
import tensorflow as tf
from command import describe_machine, names

from keras_transformer import TextClassifier
from keras_transformer.tasks.run import Run
from keras_transformer.training.data.sources import open_source
from keras_transformer.training.devices.workers import Workers
from keras_transformer.training.factory import model_config
from keras_transformer.training.loop.final import load_final
from keras_transformer.training.session import Session
from keras_transformer.training.settings.toml import SettingsError, load_settings, save_settings

OURS = "transformer"
# Which checkpoint is measured; the training is the same.
RULES = {"last": "last checkpoint", "best": "best on validation"}
BEST = ("training.best_by=accuracy", "training.final_model=best")


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
    """Trains a model, unless it is finished, and returns its figures by both rules."""
    session = _session(name, settings, output, console)
    session.restore()
    session.fit()
    measured = {"last": _accuracies(session, session.update, session.validation, choose)}
    measured["best"] = _accuracies(session, *load_final(session), choose)
    parameters = session.learner.model.count_params()
    return {"parameters": parameters, "train_seconds": round(session.seconds, 1), **measured}


def _session(name, settings, output, console):
    """A `Session` with a recurrent model in the place of the package's, or with the latter."""
    place = output / f"{name}-{settings.training.seed}"
    run, task = Run(place), settings.task.get()
    place.mkdir(parents=True, exist_ok=True)
    if run.config.exists() and load_settings(run.config) != settings:
        raise SettingsError(f"{place} was trained with other settings.")
    save_settings(settings, run.config)
    data, make_model = open_source(settings.data, task.columns), None
    if MODELS[name] is not None:
        ours = Run(output / f"{OURS}-{settings.training.seed}")
        run.write_tokenizers(ours.load_tokenizers())
        fields = {**data.facts(), **task.survey(data.rows("train")).fields}
        config = model_config(settings, run.load_tokenizers(), **fields)
        make_model = functools.partial(MODELS[name].make, config, _units(MODELS[name], config))
    workers = Workers(tf.distribute.get_strategy())
    return Session(run, settings, data, console, workers, make_model=make_model)


def _units(kind, config):
    """The units of a recurrent model that is as large as the package's."""
    with keras.StatelessScope(initialize_variables=False):
        return kind.units(config, TextClassifier(config).count_params())


def _accuracies(session, update, validation, choose):
    """The accuracies of the weights in a session, in percent, and the update they are from."""
    figures = {"update": update, "validation": 100 * validation["accuracy"]}
    if choose:
        return figures
    corpus = session.training.corpus(session.data, "test", session.settings.data)
    if corpus.size != session.data.count("test"):
        raise click.ClickException("`data.max_length` must not leave out texts of the test split.")
    batches = corpus.batches(session.settings.data.size_of_batch)
    results = session.learner.evaluate(batches, verbose=0, return_dict=True)
    return {**figures, "test": 100 * results["accuracy"]}


def summary(results, split):
    """Returns for each rule and model the accuracies of all seeds and their median."""
    return {
        rule: {
            name: {"median": statistics.median(values), "seeds": values}
            for name, of_seeds in results.items()
            for values in [[figures[rule][split] for figures in of_seeds.values()]]
        }
        for rule in RULES
    }


def table(results, split):
    """Returns the lines of the table."""
    lines = [f"accuracy, {split}: median (least to most) of {len(results[OURS])} seeds"]
    lines.append(f"{'':<20}{'parameters':>12}" + "".join(f"{rule:>26}" for rule in RULES.values()))
    figures = summary(results, split)
    for name, of_seeds in results.items():
        cells = ""
        for rule in RULES:
            values = figures[rule][name]["seeds"]
            cells += f"{statistics.median(values):>9.2f} ({min(values):.2f} to {max(values):.2f})"
        parameters = next(iter(of_seeds.values()))["parameters"]
        lines.append(f"{name:<20}{parameters:>12,}{cells}")
    return lines


# fmt: off
@click.command(context_settings={"show_default": True})
@click.option("--output", type=click.Path(path_type=pathlib.Path), required=True,
              help="Folder of the runs.")
@click.option("--config", default="sst2", help="A configuration for text classification.")
@click.option("--models", default=f"{OURS},lstm_max", callback=names(MODELS))
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
            settings = load_settings(config, [*overrides, *BEST, f"training.seed={seed}"])
            for name in models:
                results[name][seed] = measure(name, settings, output, choose, console)
                print(f"{name} {seed}: {results[name][seed]}", flush=True)
        except SettingsError as error:
            raise click.ClickException(str(error)) from error
    split = "validation" if choose else "test"
    print("\n".join(table(results, split)))
    report = {"machine": describe_machine(1), "config": config, "overrides": overrides,
              "split": split, "summary": summary(results, split), "results": results}  # fmt: skip
    (output / "classification.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
