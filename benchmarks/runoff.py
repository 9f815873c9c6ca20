"""Discharge of a river predicted from weather: five encoders, five seeds each.

    python benchmarks/runoff.py --output RUNS [--encoders lstm,...] [--seeds 1,2,3] [--weather]

Trains `runoff_ENCODER` for every seed into RUNS/ENCODER-SEED; finished runs are not trained again.
For each encoder, prints the median and the range of KGE' and NSE over its seeds in the calibration
and test periods, and the metrics of the mean of its seeds' simulations; for comparison, those of
CemaNeige-GR4J as calibrated here, and the published results of airGR's. Writes RUNS/runoff.json,
and a hydrograph of the median run of the best encoder in the test period, RUNS/hydrograph.png.

With --weather the models read the weather without a snow account. With --pretrain they are first
trained on discharge that CemaNeige-GR4J simulates from resampled weather of the calibration period.
With --choose the test period is not evaluated, for choosing settings: each year of the calibration
period is left out of training (and of the calibration of CemaNeige-GR4J) in turn, and the metrics
are those of the years left out, joined into one series.
"""

import json
import pathlib
import statistics
import time

import click
import numpy as np
from command import names
from runoff_cases import LEFT_OUT, YEARS, Case, dates_of, read_split, simulate

ENCODERS = ("transformer", "lstm", "gru", "lstm_attention", "gru_attention")
# CemaNeige-GR4J, calibrated and validated by airGR's vignette.
PUBLISHED = {"train": {"kge": 0.937}, "test": {"kge": 0.878}}
WEATHER = "data.snow=[]"
CONCEPTUAL = "CemaNeige-GR4J"


def metrics_of(observed, simulated):
    """Returns KGE' and NSE over the days with a known discharge."""
    from keras_transformer.tasks.time_series.metrics import kling_gupta, nash_sutcliffe

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


def summaries(simulations, observed):
    """Returns the `summary` of one model in each split.

    Args:
        simulations: Dictionary from seeds to splits to simulated discharges, `[days]`.
        observed: Dictionary from splits to observed discharges, `[days]`.
    """
    return {
        split: summary({seed: series[split] for seed, series in simulations.items()}, values)
        for split, values in observed.items()
    }


def joined(series):
    """Returns series of several cases, a list of dictionaries from splits, as one dictionary."""
    return {split: np.concatenate([case[split] for case in series]) for split in series[0]}


def table(report):
    """Returns the lines of the table: median and range of KGE' and NSE in each split.

    Args:
        report: Dictionary from models to splits to results of `summary`.
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
        if encoder == CONCEPTUAL:  # one simulation
            continue
        cells = [
            f"{of_splits[split]['mean'][key]:.3f}" for split in splits for key in ("kge", "nse")
        ]
        lines.append(f"{'  mean of seeds':<16}" + "".join(f"{cell:>28}" for cell in cells))
    if "test" in splits:
        cells = [PUBLISHED[split]["kge"] for split in splits]
        lines.append(f"{'airGR':<16}" + "".join(f"{c:>28.3f}{'':>28}" for c in cells))
    return lines


def middle_run(report, split):
    """Returns the encoder with the best median KGE', and the seed closest to this median."""
    encoders = [model for model in report if model != CONCEPTUAL]
    best = max(encoders, key=lambda encoder: report[encoder][split]["median"]["kge"])
    seeds, median = report[best][split]["seeds"], report[best][split]["median"]["kge"]
    return best, min(seeds, key=lambda seed: abs(seeds[seed]["kge"] - median))


def draw(folder, settings, split, path, title):
    """Draws the hydrograph of a run."""
    from keras_transformer.plots.figure import save_figure
    from keras_transformer.tasks.time_series.plots import hydrograph_figure

    inputs, observed = read_split(settings, split)
    figure = hydrograph_figure(
        dates_of(settings, split),
        observed,
        simulate(folder, settings, split),
        rain=inputs[-len(observed) :, 0].tolist(),
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
@click.option("--pretrain", is_flag=True, help="Pretrain on the conceptual model's simulation.")
@click.option("--choose", is_flag=True, help="Evaluate on years left out of the calibration only.")
@click.option("--set", "overrides", multiple=True, help="Override a setting of all training runs.")
def main(output, encoders, seeds, weather, pretrain, choose, overrides):
    """Train, simulate, and print the table."""
    output.mkdir(parents=True, exist_ok=True)
    overrides = [*overrides, *([WEATHER] if weather else [])]
    splits = (LEFT_OUT,) if choose else ("train", "test")
    cases = [Case(output, year, overrides) for year in (YEARS if choose else [None])]
    observed = joined([{split: case.observed(split) for split in splits} for case in cases])
    report, begin = {}, time.perf_counter()
    simulations = {1: joined([{split: c.conceptual(split) for split in splits} for c in cases])}
    report[CONCEPTUAL] = summaries(simulations, observed)
    for encoder in encoders:
        simulations = {}
        for seed in map(int, seeds.split(",")):
            simulated = [case.simulated(encoder, seed, pretrain, splits) for case in cases]
            simulations[seed] = joined(simulated)
            print(f"{encoder} {seed}: {time.perf_counter() - begin:.0f} s", flush=True)
        report[encoder] = summaries(simulations, observed)
        (output / "runoff.json").write_text(json.dumps(report, indent=2) + "\n")
    print("\n".join(table(report)))
    if not choose:
        encoder, seed = middle_run(report, "test")
        kge = report[encoder]["test"]["seeds"][seed]["kge"]
        title = f"The Durance at Embrun, {encoder} with seed {seed}: KGE' {kge:.3f}"
        folder, settings = cases[0].run(encoder, seed, pretrain)
        draw(folder, settings, "test", output / "hydrograph.png", title)
    print(f"{output}; {(time.perf_counter() - begin) / 60:.0f} minutes")


if __name__ == "__main__":
    main()
