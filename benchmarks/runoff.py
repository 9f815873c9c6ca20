"""Discharge of a river predicted from weather: five encoders, five seeds each.

    python benchmarks/runoff.py --output RUNS [--encoders lstm,...] [--seeds 1,2,3] [--weather]

Trains `runoff_ENCODER` for every seed into RUNS/ENCODER-SEED; finished runs are not trained again.
For each encoder, prints the median and the range of KGE' and NSE over its seeds in the calibration
and test periods, and the metrics of the mean of its seeds' simulations; and the published results
of airGR's CemaNeige-GR4J for the same periods. Writes RUNS/runoff.json, and a hydrograph of the
median run of the best encoder in the test period, RUNS/hydrograph.png. With --weather the models
read the weather without a snow account. With --choose the last year of the calibration period is
excluded from training and evaluated in place of the test period, for choosing settings.
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
    """Returns the simulated and the observed discharge in a split, an array of its days each."""
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


def metrics_of(observed, simulated):
    """Returns KGE' and NSE over the days with a known discharge."""
    from keras_transformer.tasks.series.efficiency import kling_gupta, nash_sutcliffe

    known = np.isfinite(observed)
    return {
        "kge": kling_gupta(observed[known], simulated[known]),
        "nse": nash_sutcliffe(observed[known], simulated[known]),
    }


def summary(simulations, observed):
    """Returns the metrics of one encoder in one split.

    Args:
        simulations: Dictionary from seeds to simulated discharges, `[days]`.
        observed: Observed discharge, `[days]`.

    Returns:
        Dictionary with `seeds`, the metrics of each seed; `median`, `least` and `most` of these;
        and `mean`, the metrics of the mean of all simulations.
    """
    seeds = {seed: metrics_of(observed, values) for seed, values in simulations.items()}
    over = {"median": statistics.median, "least": min, "most": max}
    return {
        "seeds": seeds,
        **{
            name: {
                key: reduce([metrics[key] for metrics in seeds.values()]) for key in ("kge", "nse")
            }
            for name, reduce in over.items()
        },
        "mean": metrics_of(observed, np.mean(list(simulations.values()), axis=0)),
    }


def table(report):
    """Returns the lines of the table: median and range of KGE' and NSE in each split.

    Args:
        report: Dictionary from encoders to splits to results of `summary`.
    """
    splits = list(next(iter(report.values())))
    header = "".join(f"{f'{split} {name}':>28}" for split in splits for name in ("KGE'", "NSE"))
    lines = [f"{'':<16}{header}"]
    for encoder, of_splits in report.items():
        cells = [
            f"{metrics['median'][key]:.3f} ({metrics['least'][key]:.3f} to "
            f"{metrics['most'][key]:.3f})"
            for metrics in of_splits.values()
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
    """Returns the encoder with the best median KGE', and the seed closest to this median."""
    best = max(report, key=lambda encoder: report[encoder][split]["median"]["kge"])
    seeds, median = report[best][split]["seeds"], report[best][split]["median"]["kge"]
    return best, min(seeds, key=lambda seed: abs(seeds[seed]["kge"] - median))


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
@click.option(
    "--output", type=click.Path(path_type=pathlib.Path), required=True, help="Folder of the runs."
)
@click.option(
    "--encoders", default=",".join(ENCODERS), callback=names(ENCODERS), help="Encoders to compare."
)
@click.option("--seeds", default="1,2,3,4,5", help="Seeds, one training run for each.")
@click.option("--weather", is_flag=True, help="Read the weather without a snow account.")
@click.option("--choose", is_flag=True, help="Evaluate on the last year of the calibration period.")
@click.option("--set", "overrides", multiple=True, help="Override a setting of all training runs.")
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
