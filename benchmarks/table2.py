"""Table 2 of the paper for runs of this package: what training cost, in floating-point operations.

    python benchmarks/table2.py RUN... --cores 2

The paper estimates the cost of a model as training time x number of GPUs x sustained
single-precision operations per second of a GPU (Vaswani et al., 2017, section 6.1). Here a device
is a core of the processor, which multiplies matrices of size 2048 for comparison, in the precision
of the training. Run this on the machine of the training, or name the speed with `--capacity`.

Beside it is the number of operations that training needs: those in the products of matrices and
convolutions of a forward pass, counted in the graph for some batches, times three for forward and
backward pass, times the number of updates. The logits of padding are included, which training
omits. The ratio of both is the fraction of the device that training used.
"""

import json
import pathlib

import click
from command import RESULTS, describe_machine
from measurements import BenchmarkError
from workers import Worker, processors

# Table 2: BLEU and FLOPs for English to German and English to French. 41.8 is from the paper's
# later versions on arXiv; the one in the proceedings of NIPS 2017 has 41.0.
PAPER = {
    "ByteNet": (23.75, None, None, None),
    "Deep-Att + PosUnk": (None, 39.2, None, 1.0e20),
    "GNMT + RL": (24.6, 39.92, 2.3e19, 1.4e20),
    "ConvS2S": (25.16, 40.46, 9.6e18, 1.5e20),
    "MoE": (26.03, 40.56, 2.0e19, 1.2e20),
    "Deep-Att + PosUnk, ensemble": (None, 40.4, None, 8.0e20),
    "GNMT + RL, ensemble": (26.30, 41.16, 1.8e20, 1.1e21),
    "ConvS2S, ensemble": (26.36, 41.29, 7.7e19, 1.2e21),
    "Transformer, base": (27.3, 38.1, 3.3e18, 3.3e18),
    "Transformer, big": (28.4, 41.8, 2.3e19, 2.3e19),
}
BASE = PAPER["Transformer, base"][2]
PASSES = 3  # for each product of the forward pass, the backward pass has two
PRODUCTS = 5  # matrix products that measure the speed of a core, after one to warm up


# fmt: off
@click.command(context_settings={"show_default": True})
@click.argument("runs", nargs=-1, required=True,
                type=click.Path(path_type=pathlib.Path, exists=True, file_okay=False))
@click.option("--cores", type=click.IntRange(1), default=len(processors(1)),
              help="Number of processors that training used.")
@click.option("--capacity", type=click.FloatRange(0, min_open=True),
              help="Speed of a core in GFLOP/s. Default: it is measured.")
@click.option("--batches", type=click.IntRange(1), default=6,
              help="Number of batches whose operations are counted.")
@RESULTS
# fmt: on
def main(runs, cores, capacity, batches, output):
    """Compute the training cost of RUNS, folders of `train`."""
    try:
        rows = [cost_of(run, cores, capacity, batches) for run in runs]
    except BenchmarkError as error:
        raise click.ClickException(str(error)) from error
    report = {"machine": describe_machine(1), "cores": cores, "batches": batches, "runs": rows}
    if output:
        output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"{paper_table()}\n\n{table(rows)}")


def cost_of(run, cores, capacity, batches):
    """Returns a row of the report.

    Args:
        run: Folder of a finished run.
        cores: Number of processors that training used.
        capacity: Speed of one in GFLOP/s; `None`: it is measured.
        batches: Number of batches to count.
    """
    order = {"run": str(run.resolve()), "batches": batches}
    with Worker(str(run), "table2_run", order, cores=1) as worker:
        counted = worker.metadata
    speed = 1e9 * capacity if capacity else core_speed(counted["precision"])
    seconds = counted["train_seconds"]
    needed = 2 * PASSES * counted["multiplications"] * counted["passes"]
    estimate = paper_estimate(seconds, cores, speed)
    return {
        "run": run.name, **counted, "cores": cores, "flops_per_second": speed,
        "estimate": estimate, "counted": needed, "utilization": needed / estimate,
    }  # fmt: skip


def paper_estimate(seconds, devices, flops_per_second):
    """Returns the floating-point operations of training by the paper's estimate."""
    return seconds * devices * flops_per_second


def core_speed(precision):
    """Returns the floating-point operations per second of a core that multiplies matrices."""
    with Worker("limit", "limit", {"precision": precision}, cores=1) as worker:
        worker.run(1)
        seconds = worker.run(PRODUCTS)["processor_seconds"] / PRODUCTS
        return worker.metadata["flops"] / seconds


def paper_table():
    """Returns the paper's Table 2 in Markdown."""
    titles = ["", "BLEU, EN-DE", "BLEU, EN-FR", "FLOPs, EN-DE", "FLOPs, EN-FR"]
    lines = [
        [name, *(_number(value) for value in row[:2]), *(_flops(value) for value in row[2:])]
        for name, row in PAPER.items()
    ]
    return _markdown(titles, lines)


def table(rows):
    """Returns a table of runs in Markdown."""
    titles = [
        "run", "test", "parameters", "updates", "seconds x cores", "GFLOP/s of a core",
        "FLOPs, the paper's estimate", "FLOPs, counted", "used", "base / estimate",
    ]  # fmt: skip
    lines = [
        [
            f"`{row['run']}`", _results(row["test"]), f"{row['parameters']:,}",
            f"{row['updates']:,}", f"{row['train_seconds']:,.0f} x {row['cores']}",
            f"{row['flops_per_second'] / 1e9:,.0f}", _flops(row["estimate"]),
            _flops(row["counted"]), f"{row['utilization']:.0%}",
            f"{BASE / row['estimate']:,.0f}",
        ]
        for row in rows
    ]  # fmt: skip
    return _markdown(titles, lines)


def _markdown(titles, lines):
    rows = [titles, ["---"] * len(titles), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _results(test):
    return ", ".join(f"{name} {value:.2f}" for name, value in test.items())


def _number(value):
    return "" if value is None else f"{value:g}"


def _flops(value):
    """Returns a number such as `2.3e19`, as the paper rounds it."""
    return "" if value is None else f"{value:.1e}".replace("e+", "e")


if __name__ == "__main__":
    main()
