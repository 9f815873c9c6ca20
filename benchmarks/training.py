"""Training speed in target tokens per second: keras_transformer compared with three libraries.

    python benchmarks/training.py --size both --cores 1 --json results.json

All peers train the same model on the same batch: see `task.py` for the task and `peers/` for the
peers. Each peer runs in its own process. In a repeat, all peers run a few steps in turn, and each
repeat begins with another peer. The precisions are compared one after the other, because eight base
models at a time would need some 30 GB; four need about 15 GB.

Tokens are target positions, padding included (64 x 32 in a step). All peers compute the hidden
states of all positions; ours does not compute the logits of padding, some 12 %, which no loss
needs. The limit is the speed of a step that consists only of the necessary matrix products, at the
speed of one large product measured in the same repeats. For a peer's share of the limit, the matrix
products that this peer computes are counted.

Before a peer is timed, it must prove that it trains with dropout: with a learning rate of 0, its
losses must be equal without dropout and differ with dropout.
"""

import contextlib
import dataclasses
import json

import click
import rich.console
import rich.table
from command import RESULTS, Peer, describe_machine, interleave, look_for, names, versions
from measurements import (
    BenchmarkError,
    check_dropout,
    check_learning,
    check_parameters,
    ratio_to_fastest,
    spread,
)
from task import SIZES
from workers import Worker, task_order

PRECISIONS = ("float32", "mixed_bfloat16")
WARM_UP = 4  # steps before the measurement: the first one traces, and the losses must decrease
PROBES = 5  # steps to check dropout with
PRODUCTS = 10  # matrix products per repeat, to measure the limit
MEBI = 2**20
PACKAGES = ("tensorflow", "keras", "keras-hub", "torch")


PEERS = {
    "ours": Peer("peers.ours", "keras_transformer", "pip install -e ."),
    "kerashub": Peer("peers.kerashub", "keras_hub", "pip install keras-hub"),
    "tutorial": Peer("peers.tutorial", "keras", "pip install keras"),
    "torch": Peer("peers.pytorch", "torch", "pip install torch"),
}


# fmt: off
@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--size", type=click.Choice([*SIZES, "both"]), default="tiny", show_default=True,
              help="Size of the model; both: tiny and base.")
@click.option("--cores", type=click.IntRange(1), default=1, show_default=True,
              help="Number of processors that every peer is pinned to, and of its threads.")
@click.option("--repeats", type=click.IntRange(1), default=10, show_default=True,
              help="Number of repeats.")
@click.option("--steps", type=click.IntRange(1), default=5, show_default=True,
              help="Number of training steps in a repeat.")
@click.option("--peers", callback=names(PEERS), default=",".join(PEERS), show_default=True,
              help="Implementations to compare.")
@click.option("--precisions", callback=names(PRECISIONS), default=",".join(PRECISIONS),
              show_default=True, help="Precisions to compare.")
@click.option("--jit", is_flag=True, help="Compile the Keras models, including ours, with XLA.")
@click.option("--closed-form", is_flag=True,
              help="Use label smoothing in closed form for the Keras peers as well.")
@click.option("--input", "corpus", type=click.Choice(["auto", "cldr", "multi30k", "smoke"]),
              is_flag=False, flag_value="auto",
              help="Also measure the input pipeline; auto: on Multi30K if present, else on CLDR.")
@RESULTS
# fmt: on
def main(size, cores, repeats, steps, peers, precisions, jit, closed_form, corpus, output):
    """Compare the training speed of implementations."""
    try:
        installed, skipped = look_for(peers, PEERS)
        report = {
            "machine": describe_machine(cores),
            "settings": {
                "cores": cores, "repeats": repeats, "steps": steps, "jit_compile": jit,
                "closed_form_loss": closed_form, "versions": versions(PACKAGES),
            },
            "skipped": skipped, "training": [], "ratios": [], "limits": [], "input": None,
        }  # fmt: skip
        for name in ("tiny", "base") if size == "both" else (size,):
            task = dataclasses.replace(SIZES[name], jit_compile=jit, closed_form_loss=closed_form)
            for precision in precisions:
                compare(report, task, precision, installed, cores, repeats, steps)
        if corpus:
            measure_input(report, corpus, cores, repeats)
    except BenchmarkError as error:
        raise click.ClickException(str(error)) from error
    if output:
        output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    show(report)


def compare(report, task, precision, peers, cores, repeats, steps):
    """Measures all peers at one size and precision and adds the results to the report."""
    for name in peers:
        prove_dropout(name, task.dropout, precision, cores)
    order = task_order(task, precision, cores)
    with contextlib.ExitStack() as stack:

        def start(name, module):
            print(f"{task.size}, {precision}: starting {name}", flush=True)
            return stack.enter_context(Worker(name, module, order, cores))

        limit = start("limit", "limit")
        limit.run(PRODUCTS)
        workers, losses = {}, {}
        for name in peers:
            workers[name] = start(name, PEERS[name].module)
            losses[name] = [workers[name].run(1)["loss"] for _ in range(WARM_UP)]
            check_learning(name, losses[name])
        check_parameters({name: worker.metadata["parameters"] for name, worker in workers.items()})
        runs = interleave(
            {"limit": limit, **workers},
            {"limit": PRODUCTS, **dict.fromkeys(workers, steps)},
            repeats,
            limits=("limit",),
        )
    flops = spread([PRODUCTS * limit.metadata["flops"] / run["seconds"] for run in runs["limit"]])
    needed = task.training_flops(task.real_share)
    report["limits"].append(
        {
            "size": task.size, "precision": precision, "flops_per_second": flops,
            "training_flops_per_token": needed, "tokens_per_second": flops["median"] / needed,
            "padding": 1 - task.real_share,
        }
    )  # fmt: skip
    speeds = {
        name: [steps * task.places / run["seconds"] for run in runs[name]] for name in workers
    }
    for name, worker in workers.items():
        peak = runs[name][-1]["peak_bytes"]
        speed = spread(speeds[name])
        own_flops = task.training_flops(worker.metadata.get("logits_share", 1.0))
        report["training"].append(
            {
                "size": task.size, "precision": precision, "peer": name,
                "parameters": worker.metadata["parameters"],
                "tokens_per_second": speed,
                "share_of_limit": speed["median"] * own_flops / flops["median"],
                "peak_bytes": peak,
                # The memory of the imported libraries does not depend on the batch.
                "bytes_per_token": (peak - worker.metadata["start_bytes"]) / task.places,
                "losses": [*losses[name], *(run["loss"] for run in runs[name])],
            }
        )  # fmt: skip
    ratio = ratio_to_fastest(speeds)
    if ratio:
        report["ratios"].append({"size": task.size, "precision": precision, **ratio})


def prove_dropout(name, rate, precision, cores):
    """Raises `BenchmarkError` if a peer trains without dropout, or with dropout at rate 0."""
    for chosen in (0.0, rate):
        print(f"{precision}: dropout of {chosen:g} in {name}", flush=True)
        probe = dataclasses.replace(SIZES["smoke"], learning_rate=0.0, dropout=chosen)
        order = task_order(probe, precision, cores)
        with Worker(name, PEERS[name].module, order, cores) as worker:
            check_dropout(name, chosen, [worker.run(1)["loss"] for _ in range(PROBES)])


def measure_input(report, corpus, cores, repeats):
    """Measures the input pipeline, and compares its speed with that of our training steps."""
    print(f"input: starting {corpus}", flush=True)
    order = {"corpus": corpus, "batch_tokens": SIZES["tiny"].places}
    with Worker("input", "input_pipeline", order, cores) as worker:
        worker.run(1)
        runs = [worker.run(1) for _ in range(repeats)]
    speed = spread([run["places"] / run["seconds"] for run in runs])
    report["input"] = {
        **{name: worker.metadata[name] for name in
           ("corpus", "pairs", "target_tokens", "padding", "tokenize_seconds")},
        "tokens_per_second": speed,
        "share_of_training_step": [
            {
                "size": row["size"], "precision": row["precision"],
                "share": row["tokens_per_second"]["median"] / speed["median"],
            }
            for row in report["training"] if row["peer"] == "ours"
        ],
    }  # fmt: skip


def show(report):
    """Prints the report as tables."""
    console = rich.console.Console()
    console.width = max(console.width, 120)  # in a file, the default would be 80 columns
    table = rich.table.Table("size", "precision", "peer")
    for title in ("tokens/s", "quartiles", "of limit", "peak MiB", "KiB/token", "memory", "params"):
        table.add_column(title, justify="right")
    own = {
        (row["size"], row["precision"]): row["bytes_per_token"]
        for row in report["training"] if row["peer"] == "ours"
    }  # fmt: skip
    for row in report["training"]:
        speed, mine = row["tokens_per_second"], own.get((row["size"], row["precision"]))
        table.add_row(
            row["size"], row["precision"], row["peer"], f"{speed['median']:,.0f}",
            f"{speed['lower']:,.0f} to {speed['upper']:,.0f}", f"{row['share_of_limit']:.0%}",
            f"{row['peak_bytes'] / MEBI:,.0f}", f"{row['bytes_per_token'] / 1024:,.0f}",
            f"{row['bytes_per_token'] / mine:.2f}" if mine else "", f"{row['parameters']:,}",
        )  # fmt: skip
    console.print(table)
    print("KiB/token: peak memory beyond that of the imported libraries; memory: relative to ours.")
    for limit in report["limits"]:
        print(
            f"limit, {limit['size']}, {limit['precision']}: "
            f"{limit['flops_per_second']['median'] / 1e9:,.0f} GFLOP/s at "
            f"{limit['training_flops_per_token'] / 1e6:,.1f} MFLOP/token, without the logits of "
            f"{limit['padding']:.1%} padding, are {limit['tokens_per_second']:,.0f} tokens/s"
        )
    for comparison in report["ratios"]:
        ratio = comparison["ratio"]
        print(
            f"ours / {comparison['fastest_peer']}, the fastest peer, {comparison['size']}, "
            f"{comparison['precision']}: {ratio['median']:.2f} "
            f"({ratio['lower']:.2f} to {ratio['upper']:.2f})"
        )
    if report["input"]:
        show_input(report["input"])


def show_input(results):
    """Prints the results of the input pipeline."""
    speed = results["tokens_per_second"]
    print(
        f"input, {results['corpus']}: {speed['median']:,.0f} tokens/s "
        f"({speed['lower']:,.0f} to {speed['upper']:,.0f}), {results['padding']:.1%} padding, "
        f"{results['pairs']:,} pairs tokenised in {results['tokenize_seconds']:.1f} s"
    )
    for step in results["share_of_training_step"]:
        print(
            f"  {step['share']:.2%} of the time of a training step, "
            f"{step['size']}, {step['precision']}"
        )


if __name__ == "__main__":
    main()
