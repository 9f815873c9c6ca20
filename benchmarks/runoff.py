"""Discharge of a river from weather: five encoders, five seeds each.

    python benchmarks/runoff.py --output RUNS [--encoders lstm,...] [--seeds 1,2,3] [--jobs 2]

Trains `runoff_ENCODER` for every seed into RUNS/ENCODER-SEED; what is finished there is not trained
again. Prints for each encoder the median and the range of KGE' and NSE in the test period, and what
airGR's CemaNeige-GR4J reaches by the same protocol; writes RUNS/runoff.json and RUNS/hydrograph.png
of the best encoder's median run. With --choose the last year of the calibration is left out of the
training and judged instead: the figures to choose settings by.
"""

import concurrent.futures
import datetime
import json
import pathlib
import statistics
import subprocess
import sys

import click
from command import names

ENCODERS = ("transformer", "lstm", "gru", "lstm_attention", "gru_attention")
PUBLISHED = {"kge": 0.878}  # CemaNeige-GR4J, calibrated and validated by airGR's vignette
CHOOSE = "data.train=[2000-09-01, 2004-08-31]"


def train(folder, encoder, seed, overrides):
    """Trains one run, unless it is finished; returns the figures of its splits."""
    command = [sys.executable, "-m", "keras_transformer"]
    options = [word for override in overrides for word in ("--set", override)]
    settings = ["--set", f"training.seed={seed}", *options]
    run = [*command, "train", f"runoff_{encoder}", "--output", folder, *settings]
    subprocess.run(run, check=True, capture_output=True, text=True)
    figures = {}
    for split in ("validation", "test"):
        done = subprocess.run(
            [*command, "evaluate", folder, "--split", split],
            check=True,
            capture_output=True,
            text=True,
        )
        figures[split] = json.loads(done.stdout)
    return figures


def summary(results, split):
    """Returns for each encoder the median, the least and the most of its figures over seeds."""
    return {
        encoder: {
            name: {
                "median": statistics.median(values),
                "least": min(values),
                "most": max(values),
            }
            for name in ("kge", "nse")
            for values in [[figures[split][name] for figures in of_seeds.values()]]
        }
        for encoder, of_seeds in results.items()
    }


def table(results, split):
    """Returns the lines of the table."""
    lines = [f"{'':<16} {'KGE' + chr(39):>24} {'NSE':>24}"]
    for encoder, figures in summary(results, split).items():
        cells = [
            f"{value['median']:.3f} ({value['least']:.3f} to {value['most']:.3f})"
            for value in figures.values()
        ]
        lines.append(f"{encoder:<16} {cells[0]:>24} {cells[1]:>24}")
    if split == "test":
        lines.append(f"{'CemaNeige-GR4J':<16} {PUBLISHED['kge']:>24.3f} {'':>24}")
    return lines


def median_run(results, split):
    """Returns the encoder with the best median, and its seed whose figure is nearest to it."""
    medians = {name: of["kge"]["median"] for name, of in summary(results, split).items()}
    best = max(medians, key=medians.get)
    seeds = results[best]
    seed = min(seeds, key=lambda seed: abs(seeds[seed][split]["kge"] - medians[best]))
    return best, seed


def draw(folder, split, path, title):
    """Draws the hydrograph of a run."""
    from keras_transformer import Run, SeriesSimulator
    from keras_transformer.plots.figure import save_figure
    from keras_transformer.plots.hydrograph import hydrograph_figure
    from keras_transformer.training.data.sources import open_source
    from keras_transformer.training.evaluate import read_columns
    from keras_transformer.training.settings.toml import load_settings

    settings = load_settings(Run(folder).config).data
    source = open_source(settings)
    inputs, observed = read_columns(source, split)
    simulated = SeriesSimulator.from_run(folder)(inputs)
    first, last = getattr(settings, split)
    days = (last - first).days + 1
    dates = [first + datetime.timedelta(day) for day in range(days)]
    rain = [row[0] for row in inputs[-days:]]
    figure = hydrograph_figure(
        dates,
        observed[-days:],
        simulated[-days:],
        rain=rain,
        target=settings.target,
        title=title,
    )
    save_figure(figure, path)


@click.command()
@click.option("--output", type=click.Path(path_type=pathlib.Path), required=True)
@click.option("--encoders", default=",".join(ENCODERS), callback=names(ENCODERS))
@click.option("--seeds", default="1,2,3,4,5")
@click.option("--jobs", default=1, type=click.IntRange(1), help="Trainings at a time.")
@click.option("--choose", is_flag=True, help="Leave the last year out and judge it.")
@click.option("--set", "overrides", multiple=True, help="Settings of every training.")
def main(output, encoders, seeds, jobs, choose, overrides):
    """Train, evaluate, and print the table."""
    overrides = [*overrides, *([CHOOSE] if choose else [])]
    split = "validation" if choose else "test"
    orders = [(encoder, int(seed)) for encoder in encoders for seed in seeds.split(",")]
    results = {encoder: {} for encoder in encoders}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {
            pool.submit(train, output / f"{encoder}-{seed}", encoder, seed, overrides): (
                encoder,
                seed,
            )
            for encoder, seed in orders
        }
        for done in concurrent.futures.as_completed(waiting):
            encoder, seed = waiting[done]
            try:
                results[encoder][seed] = done.result()
            except subprocess.CalledProcessError as error:
                raise click.ClickException(error.stderr.strip().splitlines()[-1]) from error
            print(f"{encoder} {seed}: {results[encoder][seed][split]}", flush=True)
    print("\n".join(table(results, split)))
    report = {"split": split, "results": results, "summary": summary(results, split)}
    (output / "runoff.json").write_text(json.dumps(report, indent=2) + "\n")
    encoder, seed = median_run(results, split)
    kge = results[encoder][seed][split]["kge"]
    picture = output / "hydrograph.png"
    draw(output / f"{encoder}-{seed}", split, picture, f"{encoder}, KGE' {kge:.3f}")
    print(picture)


if __name__ == "__main__":
    main()
