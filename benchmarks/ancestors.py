"""The Transformer and what came before it on Multi30K: translations, speed and size.

    KERAS_TRANSFORMER_DATA=... python benchmarks/ancestors.py --folder RUNS

Each system is a packaged configuration, or the Transformer's with another mixer. Its width is
changed until it has as many parameters as the Transformer of `multi30k_tokenized` with the same
vocabulary, within 2 %. All systems have the same data, vocabulary, batches, number of updates and
schedule. For each, every pair of a learning rate and a dropout rate is trained with the first seed;
the pair with the best BLEU of greedy search on validation is trained with the other seeds. The test
split is not used to choose anything.

Reports BLEU on test of every seed, target tokens per second of processor time in training (with
learning the vocabulary and building the graph), and of the first seed's `.tflite` file the size and
the processor time of a sentence with greedy search, on one core.
Writes `RUNS/ancestors.json` after each run, and the table as `RUNS/table.md`. Repeat an
interrupted call: finished runs are kept, and others resume. `--smoke` only shows that every step
works.
"""

import contextlib
import itertools
import json
import os
import pathlib
import statistics
import time

import click
from command import describe_machine, names
from decoding_files import run_command
from measurements import BenchmarkError
from pareto import measure, read_split

BASE = "multi30k_tokenized"
# For each system, its packaged configuration, and options of the model that differ from it. With
# two heads the widths to choose from are closer together.
SYSTEMS = {
    "transformer": (BASE, ()),
    "ssru": (BASE, ("model.decoder=ssru",)),
    "gru": (BASE, ("model.mixer=gru", "model.num_heads=2")),
    "lstm": (BASE, ("model.mixer=lstm", "model.num_heads=2")),
    "bahdanau": ("multi30k_bahdanau", ()),
    "convs2s": ("multi30k_convs2s", ()),
    "bytenet": ("multi30k_bytenet", ()),
}
TOLERANCE = 0.02  # of the number of parameters
PEAKS, DROPOUTS = (0.002, 0.005), (0.1,)
# Settings of all runs, so that systems differ in their models alone.
EQUAL = (
    "data.batch_tokens=2048", "vocabulary.size=4000", "vocabulary.split_digits=false",
    "optimizer.clip_norm=1.0", "schedule.kind=linear", "schedule.warmup_steps={warmup}",
    "schedule.final=0.0", "training.updates={updates}", "training.simcut=0.0",
    "training.precision=auto", "training.validate_every={updates}",
    "training.checkpoint_every={every}", "training.keep_checkpoints=1",
    "training.validate_sentences=0",
)  # fmt: skip
SMOKE = {
    "updates": 2, "warmup": 1,
    "more": ("data.batch_tokens=256", "vocabulary.size=60", "model.max_length=64",
             "data.max_length=64"),
}  # fmt: skip
LENGTH = 64  # tokens of the longest source and output in a file


# fmt: off
@click.command(context_settings={"show_default": True})
@click.option("--folder", required=True, type=click.Path(path_type=pathlib.Path, file_okay=False),
              help="Folder for the runs, `ancestors.json` and `table.md`.")
@click.option("--systems", callback=names(SYSTEMS), default=",".join(SYSTEMS),
              help="Systems to compare.")
@click.option("--updates", type=click.IntRange(2), default=700, help="Number of updates of a run.")
@click.option("--seeds", type=click.IntRange(1), default=3, help="Number of seeds, from 1 on.")
@click.option("--peaks", default=",".join(map(str, PEAKS)), help="Learning rates to choose from.")
@click.option("--dropouts", default=",".join(map(str, DROPOUTS)),
              help="Dropout rates to choose from.")
@click.option("--beam", type=click.IntRange(2), default=5,
              help="Number of hypotheses on test; the length penalty is 1.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
              help="Setting of all systems; may be repeated.")
@click.option("--smoke", is_flag=True, help="Train two updates of tiny models.")
# fmt: on
def main(folder, systems, updates, seeds, peaks, dropouts, beam, changes, smoke):
    """Compare systems with equal parameters, updates and tuning."""
    grid = list(itertools.product(_numbers(peaks), _numbers(dropouts)))
    more, warmup = changes, max(1, updates // 6)
    if smoke:
        updates, warmup, more = SMOKE["updates"], SMOKE["warmup"], (*SMOKE["more"], *changes)
    values = {"updates": updates, "warmup": warmup, "every": max(1, updates // 10)}
    equal = [*(word.format(**values) for word in EQUAL), *more]
    try:
        target = parameters(settings_of("transformer", equal))
        rows = []
        report = {
            "machine": describe_machine(1), "settings": equal, "grid": grid, "beam": beam,
            "systems": rows,
        }  # fmt: skip
        for system in systems:
            rows.append(compare(system, target, equal, grid, seeds, beam, folder))
            path = folder / "ancestors.json"
            path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            (folder / "table.md").write_text(table(rows) + "\n", encoding="utf-8")
    except (BenchmarkError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    print(table(rows))


def settings_of(system, overrides):
    """Returns the settings of a system with overrides, which have precedence."""
    from keras_transformer.training.settings.toml import load_settings

    config, own = SYSTEMS[system]
    return load_settings(config, [*own, *overrides])


def parameters(settings):
    """Returns the number of parameters of a model with a vocabulary of the size in the settings."""
    from keras_transformer.training.factory import weightless_model

    return weightless_model(settings).count_params()


def fitted(system, target, overrides):
    """Returns the width with which a system has the wanted number of parameters, and this number.

    Args:
        system: Name of the system.
        target: Number of parameters.
        overrides: Overrides of its settings.

    Raises:
        BenchmarkError: If no width has the number within `TOLERANCE`.
    """

    def count(step):
        return parameters(settings_of(system, [*overrides, f"model.d_model={step * heads}"]))

    width, heads = _width_and_heads(settings_of(system, overrides).config())
    low, high = 1, 4 * width // heads
    while low < high:  # the smallest width with at least so many parameters
        middle = (low + high) // 2
        low, high = (middle + 1, high) if count(middle) < target else (low, middle)
    near = {step: count(step) for step in (low - 1, low) if step}
    best = min(near, key=lambda step: abs(near[step] - target))
    if abs(near[best] - target) > TOLERANCE * target:
        raise BenchmarkError(
            f"{system} has {near[best]:,} parameters with a width of {best * heads}, which differs "
            f"from {target:,} by more than {TOLERANCE:.0%}."
        )
    return best * heads, near[best]


def _width_and_heads(config):
    """Returns the width of a model, and a number by which every width must be divisible.

    It is even, for sinusoidal positions and for recurrences in both directions.
    """
    heads = config.decoder.block.memory_attention.num_heads or 1
    return config.d_model, heads * (1 + heads % 2)


def compare(system, target, overrides, grid, seeds, beam, folder):
    """Trains a system for the grid and the seeds, unless it is done; returns its row."""
    from keras_transformer import Beam, Greedy

    width, count = fitted(system, target, overrides)
    overrides, points = [*overrides, f"model.d_model={width}"], []
    for peak, dropout in grid:
        place = folder / system / f"peak-{peak:g}-dropout-{dropout:g}-seed-1"
        trained(system, [*overrides, *_point(peak, dropout, 1)], place)
        points.append({"peak": peak, "dropout": dropout, **quality(place, "validation", Greedy())})
    best = max(points, key=lambda point: point["bleu"])
    peak, dropout, runs = best["peak"], best["dropout"], []
    for seed in range(1, seeds + 1):
        place = folder / system / f"peak-{peak:g}-dropout-{dropout:g}-seed-{seed}"
        trained(system, [*overrides, *_point(peak, dropout, seed)], place)
        runs.append({
            "seed": seed, "tokens_per_second": speed(place),
            "test": quality(place, "test", Beam(beam, length_penalty=1.0))["bleu"],
            "validation": quality(place, "validation", Greedy())["bleu"],
        })  # fmt: skip
    first = folder / system / f"peak-{peak:g}-dropout-{dropout:g}-seed-1"
    return {
        "system": system, "width": width, "parameters": count, "grid": points,
        "peak": peak, "dropout": dropout, "runs": runs, **exported(first),
    }  # fmt: skip


def _point(peak, dropout, seed):
    return [f"schedule.peak={peak}", f"model.dropout={dropout}", f"training.seed={seed}"]


def trained(system, overrides, place):
    """Trains a run, or resumes it; does nothing if it is finished."""
    from keras_transformer.training.training_run import train

    print(f"training {place}", flush=True)
    is_new, begin = not place.exists(), time.process_time()
    metrics = train(settings_of(system, overrides), place)
    if is_new:  # the time of a run that was interrupted is not known
        seconds = time.process_time() - begin
        remembered(place / "speed.json", lambda: metrics["tokens_seen"] / seconds)


def speed(place):
    """Returns the tokens per processor second of a run, or `None` if it was interrupted."""
    path = place / "speed.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def quality(place, split, search):
    """Returns the BLEU of a run, from a file in its folder if it is measured already."""
    from keras_transformer.training.evaluate import evaluate_split

    name = f"{split}-{type(search).__name__.lower()}"
    return remembered(place / f"{name}.json", lambda: {
        "bleu": evaluate_split(place, split, search=search, tokenize="none")["bleu"],
    })  # fmt: skip


def exported(place):
    """Returns megabytes and milliseconds of a sentence of a run's `.tflite` file."""
    from keras_transformer import Greedy

    def export():
        source, reference = read_split([place], "test", None)
        path, sentences = place / "model.tflite", place / "sentences.txt"
        sentences.write_text("".join(f"{line}\n" for line in source[:32]), "utf-8")
        lengths = ["--lengths", f"{LENGTH}", "--max-length", f"{LENGTH}"]
        words = ["export", "litert", str(place), str(path), "--sentences", str(sentences)]
        run_command([*words, *lengths, "--greedy"])
        with _same_cores():
            (row,) = measure({(place.name, "none"): path}, Greedy(), source, reference, "none")
        return {"megabytes": row["bytes"] / 1e6, "milliseconds": row["milliseconds"]}

    return remembered(place / "file.json", export)


@contextlib.contextmanager
def _same_cores():
    """Restores the cores of the process, of which a measurement takes one; training needs all."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    try:
        yield
    finally:
        if cores is not None:
            os.sched_setaffinity(0, cores)


def remembered(path, make):
    """Returns the content of a JSON file, which is made if it is missing."""
    if not path.exists():
        path.write_text(json.dumps(make()) + "\n", encoding="utf-8")
    return json.loads(path.read_text("utf-8"))


def table(rows):
    """Returns a Markdown table with a line for each system."""
    titles = [
        "system", "width", "parameters", "BLEU on test", "mean", "tokens/s in training",
        "ms a sentence", "MB",
    ]  # fmt: skip
    lines = [titles, ["---"] * len(titles)]
    for row in rows:
        tests = [run["test"] for run in row["runs"]]
        speeds = [run["tokens_per_second"] for run in row["runs"] if run["tokens_per_second"]]
        lines.append([
            row["system"], f"{row['width']}", f"{row['parameters']:,}",
            ", ".join(f"{test:.2f}" for test in tests), f"{statistics.mean(tests):.2f}",
            f"{statistics.median(speeds):,.0f}" if speeds else "",
            f"{row['milliseconds']:.1f}", f"{row['megabytes']:.2f}",
        ])  # fmt: skip
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _numbers(text):
    """Returns the numbers of an option that lists them."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a list of numbers.") from error


if __name__ == "__main__":
    main()
