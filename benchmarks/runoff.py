"""Discharge of a river from weather: five encoders, five seeds each.

    python benchmarks/runoff.py --output RUNS [--encoders lstm,...] [--seeds 1,2,3] [--weather]

Trains `runoff_ENCODER` for every seed into RUNS/ENCODER-SEED; what is finished there is not trained
again. Prints for each encoder the median and the range of KGE' and NSE over its seeds in
calibration and in the test period, those of the mean of its seeds' simulations, and what airGR's
CemaNeige-GR4J reaches by the same protocol; writes RUNS/runoff.json, and RUNS/hydrograph.png of the
run in the middle of the encoder that is best in the test period. With --weather the models read the
weather as it is, without an account of snow. With --choose the last year of the calibration is left
out of the training and judged instead, and the test period is not looked at: the figures to choose
settings by.
"""

import datetime
import io
import json
import pathlib
import statistics
import time

import click
import numpy as np
from command import names

ENCODERS = ("transformer", "lstm", "gru", "lstm_attention", "gru_attention")
# CemaNeige-GR4J, calibrated and validated by airGR's vignette.
PUBLISHED = {"train": {"kge": 0.937}, "test": {"kge": 0.878}}
CHOOSE = "data.train=[2000-09-01, 2004-08-31]"
WEATHER = "data.snow=[]"


def train_run(folder, encoder, seed, overrides):
    """Trains one run, unless it is finished; returns its settings."""
    import keras
    import rich.console

    from keras_transformer.training.settings.toml import load_settings
    from keras_transformer.training.train import train

    keras.backend.clear_session()
    settings = load_settings(f"runoff_{encoder}", [f"training.seed={seed}", *overrides])
    train(settings, folder, console=rich.console.Console(file=io.StringIO()))
    return settings


def simulate(folder, settings, split):
    """Returns what a run simulates and what was observed in a split, an array of its days each."""
    from keras_transformer import SeriesSimulator
    from keras_transformer.training.data.sources import open_source
    from keras_transformer.training.evaluate import read_columns

    inputs, observed = read_columns(open_source(settings.data), settings.task.get(), split)
    days = len(dates_of(settings, split))
    return SeriesSimulator.from_run(folder)(inputs)[-days:], np.array(observed[-days:])


def dates_of(settings, split):
    """Returns the days of a split."""
    first, last = getattr(settings.data, split)
    return [first + datetime.timedelta(day) for day in range((last - first).days + 1)]


def figures_of(observed, simulated):
    """Returns KGE' and NSE over the days whose discharge is known."""
    from keras_transformer.tasks.series.efficiency import kling_gupta, nash_sutcliffe

    known = np.isfinite(observed)
    return {
        "kge": kling_gupta(observed[known], simulated[known]),
        "nse": nash_sutcliffe(observed[known], simulated[known]),
    }


def summary(simulations, observed):
    """Returns the figures of one encoder in one split.

    Args:
        simulations: Dictionary from seeds to what they simulate, `[days]`.
        observed: What was observed, `[days]`.

    Returns:
        Dictionary of `seeds`, the figures of each; `median`, `least` and `most` of these; and
        `mean`, the figures of the mean of all simulations.
    """
    seeds = {seed: figures_of(observed, values) for seed, values in simulations.items()}
    over = {"median": statistics.median, "least": min, "most": max}
    return {
        "seeds": seeds,
        **{
            name: {key: of([one[key] for one in seeds.values()]) for key in ("kge", "nse")}
            for name, of in over.items()
        },
        "mean": figures_of(observed, np.mean(list(simulations.values()), axis=0)),
    }


def table(report):
    """Returns the lines of the table: in each split KGE' and NSE, a median and its range.

    Args:
        report: Dictionary from encoders to splits to what `summary` returned.
    """
    splits = list(next(iter(report.values())))
    header = "".join(f"{f'{split} {name}':>28}" for split in splits for name in ("KGE'", "NSE"))
    lines = [f"{'':<16}{header}"]
    for encoder, of_splits in report.items():
        cells = [
            f"{figures['median'][key]:.3f} ({figures['least'][key]:.3f} to "
            f"{figures['most'][key]:.3f})"
            for figures in of_splits.values()
            for key in ("kge", "nse")
        ]
        lines.append(f"{encoder:<16}" + "".join(f"{cell:>28}" for cell in cells))
        cells = [
            f"{of_splits[split]['mean'][key]:.3f}" for split in splits for key in ("kge", "nse")
        ]
        lines.append(f"{'  mean of seeds':<16}" + "".join(f"{cell:>28}" for cell in cells))
    if "test" in splits:
        cells = [PUBLISHED[split]["kge"] for split in splits]
        lines.append(f"{'CemaNeige-GR4J':<16}" + "".join(f"{c:>28.3f}{'':>28}" for c in cells))
    return lines


def middle_run(report, split):
    """Returns the encoder with the best median KGE', and its seed that is nearest to it."""
    best = max(report, key=lambda encoder: report[encoder][split]["median"]["kge"])
    figures = report[best][split]
    median = figures["median"]["kge"]
    return best, min(figures["seeds"], key=lambda s: abs(figures["seeds"][s]["kge"] - median))


def draw(folder, settings, split, path, title):
    """Draws the hydrograph of a run."""
    from keras_transformer.plots.figure import save_figure
    from keras_transformer.plots.hydrograph import hydrograph_figure
    from keras_transformer.training.data.sources import open_source
    from keras_transformer.training.evaluate import read_columns

    simulated, observed = simulate(folder, settings, split)
    inputs, _ = read_columns(open_source(settings.data), settings.task.get(), split)
    figure = hydrograph_figure(
        dates_of(settings, split),
        observed,
        simulated,
        rain=[row[0] for row in inputs[-len(observed) :]],
        target="discharge, mm per day",
        rain_label="rain, mm",
        title=title,
    )
    save_figure(figure, path)


@click.command()
@click.option("--output", type=click.Path(path_type=pathlib.Path), required=True)
@click.option("--encoders", default=",".join(ENCODERS), callback=names(ENCODERS))
@click.option("--seeds", default="1,2,3,4,5")
@click.option("--weather", is_flag=True, help="Without an account of snow.")
@click.option("--choose", is_flag=True, help="Leave the last year out and judge it.")
@click.option("--set", "overrides", multiple=True, help="Settings of every training.")
def main(output, encoders, seeds, weather, choose, overrides):
    """Train, simulate, and print the table."""
    overrides = [*overrides, *([CHOOSE] if choose else []), *([WEATHER] if weather else [])]
    splits = ("train", "validation" if choose else "test")
    report, seconds = {}, []
    for encoder in encoders:
        simulations, observed = {split: {} for split in splits}, {}
        for seed in map(int, seeds.split(",")):
            begin = time.perf_counter()
            folder = output / f"{encoder}-{seed}"
            settings = train_run(folder, encoder, seed, overrides)
            for split in splits:
                simulations[split][seed], observed[split] = simulate(folder, settings, split)
            seconds.append(time.perf_counter() - begin)
            print(f"{encoder} {seed}: {seconds[-1]:.0f} s", flush=True)
        report[encoder] = {split: summary(simulations[split], observed[split]) for split in splits}
        (output / "runoff.json").write_text(json.dumps(report, indent=2) + "\n")
    print("\n".join(table(report)))
    encoder, seed = middle_run(report, splits[1])
    kge = report[encoder][splits[1]]["seeds"][seed]["kge"]
    picture = output / "hydrograph.png"
    title = f"The Durance at Embrun, {encoder} with seed {seed}: KGE' {kge:.3f}"
    draw(output / f"{encoder}-{seed}", settings, splits[1], picture, title)
    print(f"{picture}; {sum(seconds) / 60:.0f} minutes")


if __name__ == "__main__":
    main()
