"""Position encodings: translation quality at training lengths and beyond, for equal updates.

Trains one model for each position encoding on Multi30K, with the settings of
`training/configs/multi30k.toml` but only with sentences of up to `--length` tokens. Then translates
and scores the sentences of the other splits, separately for those of up to that length and for
those about twice as long. No model was trained on these sentences, and no setting was chosen with
them.

    KERAS_TRANSFORMER_DATA=... python benchmarks/positions.py --updates 1500

For encodings with a parameter shared by all long distances, the settings are such that this
parameter is trained within `--length` tokens. In a table of learned positions, the rows of later
positions are never trained; their number is printed.
"""

import json
import math
import pathlib
import tempfile

import click
import keras
import numpy as np
from command import RESULTS, describe_machine, names
from rich.console import Console
from rich.table import Table

from keras_transformer.config import BlockConfig
from keras_transformer.positions import Position
from keras_transformer.tasks import TASKS, open_run
from keras_transformer.training.evaluate import read_columns
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.training_run import train

# All that a decoder can have.
POSITIONS = tuple(
    name for name in Position.kinds() if name not in ("disentangled", "sinusoidal_grid")
)
# Limits of "about twice as long", relative to the training length.
LONGER = (1.5, 2.5)


# fmt: off
@click.command(context_settings={"show_default": True})
@click.option("--config", default="multi30k", help="A configuration for translation.")
@click.option("--updates", type=click.IntRange(2), default=1500,
              help="Number of updates for each model.")
@click.option("--length", type=click.IntRange(4), default=16,
              help="Maximum length of training sentences in tokens, the end included.")
@click.option("--positions", callback=names(POSITIONS), default=",".join(POSITIONS),
              help="Position encodings to compare.")
@click.option("--score", default=BlockConfig().score, help="Scoring function of attention.")
@click.option("--seed", type=click.IntRange(0), default=1,
              help="Seed of weights, batches and dropout.")
@click.option("--folder", type=click.Path(path_type=pathlib.Path, file_okay=False),
              help="Folder to keep the runs in; existing ones resume. Default: none is kept.")
@RESULTS
# fmt: on
def main(config, updates, length, positions, score, seed, folder, output):
    """Compare position encodings."""
    with tempfile.TemporaryDirectory() as temporary:
        runs = folder or pathlib.Path(temporary)
        rows = []
        options = {"config": config, "updates": updates, "length": length, "score": score,
                   "seed": seed}  # fmt: skip
        report = {"machine": describe_machine(1), "settings": options, "positions": rows}
        for position in positions:
            settings = _settings(config, position, updates, length, score, seed)
            rows.append({"position": position, **_measure(settings, runs / position, length)})
            if output:  # after every model, so that an interruption loses little
                output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    _show(rows, updates, length)


def _settings(config, position, updates, length, score, seed):
    """Returns training settings for a model that also takes longer sentences."""
    try:
        whole = load_settings(config)
        changes = {
            "model.position": _position(position, length),
            "model.score": score,
            "model.max_length": 4 * length,
            "data.max_length": length,
            "training.updates": updates,
            "training.seed": seed,
            "training.validate_every": max(1, updates // 2),
            "schedule.warmup_steps": min(whole.schedule.warmup_steps, max(1, updates // 4)),
        }
        return load_settings(config, [f"{key}={value}" for key, value in changes.items()])
    except SettingsError as error:
        raise click.ClickException(str(error)) from error


def _position(position, length):
    """Returns a position in TOML, with which the parameter shared by long distances is trained.

    With the settings of the papers, longer sentences would need parameters that are never trained.
    """
    distance, buckets = 3 * length // 4, length // 4 * 4
    if position == "relative":
        return f'{{ kind = "relative", distance = {distance} }}'
    if position == "t5":
        return f'{{ kind = "t5", distance = {distance}, buckets = {buckets} }}'
    return position


def _measure(settings, place, length):
    """Trains a run, unless it is finished, and returns its results."""
    trained = train(settings, place)
    translator = open_run(place)
    task = settings.task.get()
    columns = _held_out(open_source(settings.data, task.columns), task)
    sizes = [_sizes(translator, pair) for pair in zip(*columns, strict=True)]
    longer = [factor * length for factor in LONGER]
    return {
        "parameters": trained["parameters"],
        "train_seconds": trained["train_seconds"],
        "untrained": _untrained(translator.model, settings.training.seed),
        "trained": _quality(translator, columns, [size <= length for size in sizes]),
        "longer": _quality(translator, columns, [longer[0] <= s <= longer[1] for s in sizes]),
    }


def _held_out(source, task):
    """Returns the sentences of all splits except the training split, and their translations."""
    others = [split for split in source.splits if split != "train"]
    splits = [read_columns(source, task, split) for split in others]
    return [[text for column in side for text in column] for side in zip(*splits, strict=True)]


def _untrained(model, seed):
    """Returns the number of rows in a table of positions that still have their initial values."""
    keras.utils.set_random_seed(seed)  # as in training
    first = type(model)(model.config)
    return sum(
        int(np.all(begin.numpy() == end.numpy(), axis=1).sum())
        for begin, end in zip(first.weights, model.weights, strict=True)
        if begin.name == "positions"
    )


def _sizes(translator, pair):
    """Returns the number of tokens of a sentence or its translation, whichever is larger."""
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    return max(
        int(tokenizer.encode([text]).row_lengths()[0])
        for tokenizer, text in zip(tokenizers, pair, strict=True)
    )


def _quality(translator, columns, chosen):
    """Returns the BLEU of greedy search and the perplexity on the chosen sentences."""
    sources, references = (
        [text for text, wanted in zip(column, chosen, strict=True) if wanted] for column in columns
    )
    if not sources:
        raise click.ClickException(
            "`--length` leaves no short or no long sentences; choose another value."
        )
    scores = translator.score(sources, references)
    total, tokens = (sum(getattr(s, name) for s in scores) for name in ("score", "tokens"))
    bleu = TASKS["translation"].evaluate(translator, (sources, references))["bleu"]
    return {"sentences": len(sources), "bleu": bleu, "perplexity": math.exp(-total / tokens)}


def _show(rows, updates, length):
    """Prints the table."""
    first, last = (round(factor * length) for factor in LONGER)
    counts = [rows[0][kind]["sentences"] for kind in ("trained", "longer")]
    title = (
        f"{updates:,} updates with sentences of up to {length} tokens; {counts[0]:,} sentences of "
        f"up to {length}, {counts[1]:,} of {first} to {last}"
    )
    table = Table(title=title)
    for heading in ("position", "parameters", "BLEU", "perplexity", "BLEU, longer", "perplexity"):
        table.add_column(heading, justify="left" if heading == "position" else "right")
    for row in rows:
        cells = (
            f"{row[kind][name]:.2f}"
            for kind in ("trained", "longer")
            for name in ("bleu", "perplexity")
        )
        table.add_row(row["position"], f"{row['parameters']:,}", *cells)
    console = Console(width=110)
    console.print(table)
    for row in rows:
        if row["untrained"]:
            console.print(
                f"{row['position']}: {row['untrained']} rows of its table, those for longer "
                "sentences, were never trained."
            )


if __name__ == "__main__":
    main()
