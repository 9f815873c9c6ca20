"""Table 1 of the paper, measured: every mixer as one layer, from 32 to 4,096 positions.

    python benchmarks/table1.py --json table1.json --picture table1.png

A layer is a mixer alone, causal, without feed-forward network, normalisation and residual, on one
sequence. Counted or measured are

- sequential operations: the longest chain of dependent operations in the graph, loops unrolled;
- multiplications in products of matrices and convolutions;
- how far one layer reaches: the number of input positions at which the gradient of the last output
  position, or of the middle one of a layer in both directions, is not zero; and from it the number
  of layers until the last position depends on the first one, and the length of that path;
- time of a forward pass and of forward and backward pass, as a `tf.function` and compiled by XLA.
  All mixers run in turn, each in a process of its own, and times are medians. With one core they
  are processor times, which other programs affect less;
- memory: the largest resident size of the process during a forward and backward pass, beyond that
  with 2 positions, after the C library has returned free memory. It consists of outputs,
  activations and gradients of activations, and a few MB of code. On a GPU it is the peak of
  TensorFlow's allocator.

Beside them are the formulas of Vaswani et al. (2017), Table 1.
"""

import contextlib
import functools
import json
import pathlib

import click
from command import RESULTS, describe_machine, interleave, names, versions
from decoding import numbers
from measurements import BenchmarkError, spread
from table1_formulas import FORMULAS
from table1_report import draw, tables
from workers import Worker

from keras_transformer.mixers import Mixer, SelfAttention
from keras_transformer.plots.figure import save_figure
from keras_transformer.variants import plain

MODES = "graph", "xla"
LENGTHS = "32,64,128,256,512,1024,2048,4096"
RESTRICTED = "restricted"
MIXERS = (*Mixer.kinds(), RESTRICTED)
KERNEL = "width"  # option of convolutions, k
ONCE = {"forward": 1, "training": 1}  # calls of each phase
MOST_CALLS = 200  # in a repeat


def mixers(chosen, heads, window):
    """Returns the `Mixer`s by name."""
    attention = {
        SelfAttention.kind: SelfAttention(heads),
        RESTRICTED: SelfAttention(heads, window=window),
    }
    return {name: attention.get(name) or Mixer.make(name) for name in chosen}


# fmt: off
@click.command(context_settings={"show_default": True})
@click.option("--mixers", "chosen", callback=names(MIXERS), default=",".join(MIXERS),
              help="Mixers to measure; restricted: self-attention with a window.")
@click.option("--lengths", callback=numbers, default=LENGTHS, help="Numbers of positions.")
@click.option("--width", type=click.IntRange(1), default=512, help="Width d of the layers.")
@click.option("--heads", type=click.IntRange(1), default=8, help="Number of attention heads.")
@click.option("--window", type=click.IntRange(1), default=32,
              help="Window of restricted self-attention: the largest distance of a key.")
@click.option("--batch", type=click.IntRange(1), default=1, help="Number of sequences.")
@click.option("--modes", callback=names(MODES), default=",".join(MODES),
              help="How to run a layer: as a graph, or compiled by XLA.")
@click.option("--device", type=click.Choice(["cpu", "gpu"]), default="cpu",
              help="Device of the times.")
@click.option("--cores", type=click.IntRange(1), default=1, help="Number of processors.")
@click.option("--repeats", type=click.IntRange(1), default=3, help="Number of repeats.")
@click.option("--seconds", type=click.FloatRange(0), default=0.3,
              help="Approximate time of a phase of a mixer in a repeat.")
@click.option("--picture", type=click.Path(path_type=pathlib.Path, dir_okay=False),
              help="File for a plot of the times: .png, .svg or .pdf.")
@RESULTS
# fmt: on
def main(chosen, lengths, width, heads, window, batch, modes, device, cores, repeats, seconds,
         picture, output):  # fmt: skip
    """Measure the columns of the paper's Table 1 for every mixer."""
    options = {
        "lengths": lengths, "width": width, "heads": heads, "window": window, "batch": batch,
        "device": device, "repeats": repeats,
    }  # fmt: skip
    report = {
        "machine": describe_machine(cores), "versions": versions(["tensorflow", "keras"]),
        "settings": options, "counts": {}, "times": [],
    }  # fmt: skip
    gpu = device == "gpu"
    clock = "processor" if cores == 1 and not gpu else "wall"
    orders = {
        name: {"mixer": plain(mixer), "width": width, "rows": batch, "clock": clock, "gpu": gpu}
        for name, mixer in mixers(chosen, heads, window).items()
    }
    try:
        for name, order in orders.items():
            print(f"{name}: counts", flush=True)
            formula = functools.partial(by_formula, name, order["mixer"], width, window)
            report["counts"][name] = [
                {**row, "formula": formula(row["positions"])}
                for row in counted({**order, "lengths": lengths})
            ]
        for mode in modes:
            with contextlib.ExitStack() as stack:
                workers = {
                    name: stack.enter_context(Worker(name, "table1_layer", order, cores, gpu=gpu))
                    for name, order in orders.items()
                }
                for length in sorted(lengths):
                    print(f"{length} positions, {mode}", flush=True)
                    case = {"positions": length, "mode": mode}
                    report["times"] += measured(workers, case, repeats, seconds)
                    write(report, output)
    except BenchmarkError as error:
        raise click.ClickException(str(error)) from error
    print(f"\n{tables(report)}")
    if picture:
        save_figure(draw(report), picture)


def by_formula(name, mixer, width, window, positions):
    """Returns the multiplications that Table 1 states for a mixer; `None`: it has no such row.

    Args:
        name: Name of the mixer.
        mixer: Its table, with the options.
        width, window, positions: d, r and n.
    """
    formula = FORMULAS.get(name)
    kernel = mixer.get(KERNEL, 1)
    return formula and formula.multiplications(positions, width, kernel, window)


def write(report, output):
    """Writes the report after each step, so that an interruption loses little."""
    if output:
        output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def counted(order):
    """Returns the counts of a mixer, a list with a row for each number of positions."""
    with Worker("counts", "table1_reach", order, cores=1) as worker:
        return worker.metadata["counts"]


def measured(workers, case, repeats, seconds):
    """Returns rows with the times and the memory of mixers that run in turn.

    Args:
        workers: The `Worker`s by name.
        case: A dictionary with the number of `positions` and the `mode`.
        repeats: Number of repeats.
        seconds: Approximate time of a phase in a repeat.
    """
    first = {name: worker.run({**case, **ONCE}) for name, worker in workers.items()}
    running = {name: workers[name] for name in workers if "error" not in first[name]}
    steps = {
        name: {**case, **{key: _calls(seconds, first[name]["phase_seconds"][key]) for key in ONCE}}
        for name in running
    }
    runs = interleave(running, steps, repeats, ())
    rows = []
    for name, answer in first.items():
        row = {"mixer": name, **case}
        if name in running:
            times = [run["phase_seconds"] for run in runs[name]]
            row["memory"] = answer["memory"]
            row["seconds"] = {key: spread([time[key] for time in times]) for key in ONCE}
        else:
            row["error"] = answer["error"]
            print(f"  {name} is not measured: {row['error']}", flush=True)
        rows.append(row)
    return rows


def _calls(seconds, once):
    return max(1, min(MOST_CALLS, round(seconds / max(once, 1e-6))))


if __name__ == "__main__":
    main()
