"""SST-2 from scratch: the package's encoder compared with LSTMs of `keras.layers`, five seeds each.

    KERAS_TRANSFORMER_DATA=... python benchmarks/classification.py --output RUNS

All models have the same number of parameters and are trained by the package's loop with the same
configuration: the same tokens in the same batches, the same optimizer, schedule, number of updates,
dropout, label smoothing and R-Drop. Two checkpoints of each model are evaluated: the last one, and
the one with the best accuracy on the validation split. Finished runs in RUNS are not trained again,
and interrupted ones resume. Prints the median and the range of the accuracies of each model on the
test split; writes RUNS/classification.json.

With --choose the test split is not opened, and the table shows validation accuracies, for choosing
settings.
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

from keras_transformer.models import TextClassifier
from keras_transformer.tasks.run import Run
from keras_transformer.training.devices.workers import Workers
from keras_transformer.training.factory import model_config
from keras_transformer.training.loop.final import load_final
from keras_transformer.training.session import Session
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import SettingsError, load_settings, save_settings

OURS = "transformer"
# The checkpoints to evaluate; both are from the same run.
RULES = {"last": "last checkpoint", "best": "best on validation"}
BEST = ("training.best_by=accuracy", "training.final_model=best")


@dataclasses.dataclass(frozen=True)
class Recurrent:
    """A classifier with an LSTM of `keras.layers` between an embedding and a linear layer.

    Args:
        directions: 1, or 2 for a bidirectional LSTM.
        pooling: How its outputs are pooled: `"last"`, the last output of each direction, or `"max"`
            or `"mean"` over the tokens that are not padding.
    """

    directions: int
    pooling: str

    def units(self, config, parameters):
        """Returns the number of units with which the model's size is closest to `parameters`."""
        return min(range(1, 1024), key=lambda units: abs(self.count(config, units) - parameters))

    def count(self, config, units):
        """Returns the number of parameters of the model."""
        cells = 4 * units * (config.d_model + units + 1) * self.directions
        head = (self.directions * units + 1) * config.head.num_labels
        return config.tokens.vocab_size * config.d_model + cells + head

    def make(self, config, units, policy):
        """Returns a functional Keras model from token ids `[B, S]` to logits `[B, C]`.

        Dropout is at the same places as in the package's model: after the embedding, after the LSTM
        (in place of a block) and before the linear layer.
        """
        tokens = keras.Input((None,), dtype="int32")
        real = keras.ops.not_equal(tokens, config.tokens.pad_id)  # [B, S]
        embedding = keras.layers.Embedding(config.tokens.vocab_size, config.d_model, dtype=policy)
        x = keras.layers.Dropout(config.encoder.dropout)(embedding(tokens))  # [B, S, D]
        layer = keras.layers.LSTM(units, return_sequences=self.pooling != "last", dtype=policy)
        if self.directions == 2:
            layer = keras.layers.Bidirectional(layer, dtype=policy)
        x = keras.layers.Dropout(config.encoder.dropout)(layer(x, mask=real))
        if self.pooling != "last":
            x = _pooled(x, real, self.pooling)  # [B, U]
            x = keras.layers.Dropout(config.encoder.dropout)(x)
        logits = keras.layers.Dense(config.head.num_labels, dtype=policy)(x)  # [B, C]
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
    """Returns the maximum or mean of `[B, S, U]` over tokens that are not padding, `[B, U]`."""
    real = keras.ops.expand_dims(real, axis=-1)  # [B, S, 1]
    if kind == "max":
        return keras.ops.max(keras.ops.where(real, x, -1e4), axis=1)
    weights = keras.ops.cast(real, x.dtype)
    return keras.ops.sum(x * weights, axis=1) / keras.ops.sum(weights, axis=1)


def measure(name, settings, output, choose, console):
    """Trains a model, unless it is finished, and returns its results by both rules."""
    session = _session(name, settings, output, console)
    session.restore()
    session.fit()
    measured = {"last": _accuracies(session, session.update, session.validation, choose)}
    measured["best"] = _accuracies(session, *load_final(session), choose)
    parameters = session.learner.model.count_params()
    return {"parameters": parameters, "train_seconds": round(session.seconds, 1), **measured}


def _session(name, settings, output, console):
    """Returns a `Session` that trains the named model, recurrent or the package's own."""
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
        fields = {**data.metadata(), **task.survey(data.rows("train")).fields}
        config = model_config(settings, run.load_tokenizers(), **fields)
        make_model = functools.partial(MODELS[name].make, config, _units(MODELS[name], config))
    workers = Workers(tf.distribute.get_strategy())
    return Session(run, settings, data, console, workers, make_model=make_model)


def _units(kind, config):
    """Returns the number of units with which a recurrent model is as large as the package's."""
    with keras.StatelessScope(initialize_variables=False):
        return kind.units(config, TextClassifier(config).count_params())


def _accuracies(session, update, validation, choose):
    """Returns the accuracies of a session's current weights, in percent, and their update."""
    accuracies = {"update": update, "validation": 100 * validation["accuracy"]}
    if choose:
        return accuracies
    corpus = session.training.corpus(session.data, "test", session.settings.data)
    if corpus.size != session.data.count("test"):
        raise click.ClickException("`data.max_length` must not exclude texts of the test split.")
    batches = corpus.batches(session.settings.data.size_of_batch)
    results = session.learner.evaluate(batches, verbose=0, return_dict=True)
    return {**accuracies, "test": 100 * results["accuracy"]}


def summary(results, split):
    """Returns the accuracies of all seeds and their median, for each rule and model."""
    return {
        rule: {
            name: {"median": statistics.median(values), "seeds": values}
            for name, of_seeds in results.items()
            for values in [[results_of_seed[rule][split] for results_of_seed in of_seeds.values()]]
        }
        for rule in RULES
    }


def table(results, split):
    """Returns the lines of the table."""
    lines = [f"accuracy, {split}: median (minimum to maximum) of {len(results[OURS])} seeds"]
    lines.append(f"{'':<20}{'parameters':>12}" + "".join(f"{rule:>26}" for rule in RULES.values()))
    accuracies = summary(results, split)
    for name, of_seeds in results.items():
        cells = ""
        for rule in RULES:
            values = accuracies[rule][name]["seeds"]
            cells += f"{statistics.median(values):>9.2f} ({min(values):.2f} to {max(values):.2f})"
        parameters = next(iter(of_seeds.values()))["parameters"]
        lines.append(f"{name:<20}{parameters:>12,}{cells}")
    return lines


# fmt: off
@click.command(context_settings={"show_default": True})
@click.option("--output", type=click.Path(path_type=pathlib.Path), required=True,
              help="Folder of the runs.")
@click.option("--config", default="sst2", help="A configuration for text classification.")
@click.option("--models", default=f"{OURS},lstm_max", callback=names(MODELS),
              help="Models to compare.")
@click.option("--seeds", default="1,2,3,4,5", help="Seeds, one training run for each.")
@click.option("--choose", is_flag=True, help="Evaluate on the validation split only.")
@click.option("--set", "overrides", multiple=True, help="Override a setting of all training runs.")
# fmt: on
def main(output, config, models, seeds, choose, overrides):
    """Train, evaluate, and print the table."""
    console = rich.console.Console(stderr=True)
    # Ours first: the other models take over its vocabulary and its number of parameters.
    models = [OURS, *(name for name in models if name != OURS)]
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
